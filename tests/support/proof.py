"""`make proof`: pytest runs the tests of each promise in tests/proof.toml, and writes proof.json.

A promise holds when each of its entries selects a test and all of them pass. A skipped test is none
that passed. What a test prints as a JSON line is a figure of its promises.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "proof.toml"
REPORT = "proof.json"


@dataclass
class Promise:
    """A promise, its entries, and what its tests did."""

    name: str
    says: str
    entries: tuple[str, ...]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    unmatched: list[str] = field(default_factory=list)
    figures: list[object] = field(default_factory=list)

    def record(self) -> dict[str, object]:
        """Return the entry of the report."""
        holds = not self.failed and not self.unmatched and self.counts["passed"] > 0
        record: dict[str, object] = {
            "line": self.name, "pass": holds, "says": self.says, "tests": sum(self.counts.values()),
            "seconds": round(self.seconds, 1), "figures": self.figures,
        }  # fmt: skip
        reasons = self.failed + [f"no test is {entry}" for entry in self.unmatched]
        return record | ({} if holds else {"reasons": reasons})


def promises() -> dict[str, Promise]:
    """Return every promise by its name."""
    table = tomllib.loads(FILE.read_text())
    return {
        name: Promise(name, entry["says"], tuple(entry["tests"])) for name, entry in table.items()
    }


def matches(entry: str, nodeid: str) -> bool:
    """Return whether an entry names a test."""
    place, _, pattern = entry.partition(" ~ ")
    path, _, name = nodeid.partition("::")
    there = f"/{path}".endswith(f"/{place}") or path.startswith(f"{place}/")
    return there and re.search(pattern, name) is not None


class Proof:
    """The plugin of one run."""

    def __init__(self, chosen: Iterable[Promise]) -> None:
        self._promises = list(chosen)
        self._of: dict[str, list[Promise]] = {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        nodeids = [item.nodeid for item in items]
        for promise in self._promises:
            for entry in promise.entries:
                selected = [nodeid for nodeid in nodeids if matches(entry, nodeid)]
                promise.unmatched += [] if selected else [entry]
                for nodeid in selected:
                    owners = self._of.setdefault(nodeid, [])
                    owners += [] if promise in owners else [promise]
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in self._of])
        items[:] = [item for item in items if item.nodeid in self._of]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lines = report.capstdout.splitlines() if report.when == "call" else []
        figures = [json.loads(line) for line in lines if line.startswith('{"')]
        for promise in self._of[report.nodeid]:
            promise.seconds += report.duration
            if report.when == "call" or not report.passed:
                promise.counts[report.outcome] += 1
                promise.figures += figures
            if report.outcome in ("failed", "skipped"):
                promise.failed.append(f"{report.outcome}: {report.nodeid}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        records = [promise.record() for promise in self._promises]
        Path(REPORT).write_text(json.dumps(records, ensure_ascii=False, indent=1) + "\n")
        if session.exitstatus == 0 and not all(record["pass"] for record in records):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for promise in self._promises:
            record = promise.record()
            terminalreporter.write_line(f"{'holds' if record['pass'] else 'FAILS'}  {promise.name}")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--proof", metavar="NAMES", help="prove these promises; '' is all of them")


def pytest_configure(config: pytest.Config) -> None:
    names = config.getoption("--proof")
    if names is None:
        return
    known = promises()
    unknown = sorted(set(names.split()) - known.keys())
    if unknown:
        raise pytest.UsageError(f"no promise is called {', '.join(unknown)}: {', '.join(known)}")
    chosen = [known[name] for name in names.split() or known]
    config.pluginmanager.register(Proof(chosen), "proof")
