"""`make proof`: what `make test` leaves out, in shards, and which promises it keeps.

tests/proof.toml has the shards, each a list of places, and the promises, each with the tests that
show it. A run of a shard runs the proofs of its places and adds its results to proof.json. A
promise holds in a shard when all of its tests there pass; a skipped test is none that passed. An
entry that no test matches fails each run. What a test prints as a JSON line is a figure of its
promises.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[1] / "proof.toml"
REPORT = Path("proof.json")


@dataclass
class Promise:
    """A promise, its entries, and what its tests did in this run."""

    name: str
    says: str
    entries: tuple[str, ...]
    daily: int = 0
    """So many of its tests are part of `make test`."""
    counts: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    figures: list[object] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        """Return what this run shows of it."""
        record: dict[str, Any] = {
            "pass": not self.failed, "tests": self.counts.total(), "figures": self.figures,
        }  # fmt: skip
        return record | ({"reasons": self.failed} if self.failed else {})


def promises(file: Path | None = None) -> dict[str, Promise]:
    """Return every promise by its name."""
    table = tomllib.loads((file or FILE).read_text())["promises"]
    return {name: Promise(name, one["says"], tuple(one["tests"])) for name, one in table.items()}


def shards(file: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return every shard by its name: `says`, `places`, and the `rooms` of the product."""
    table: dict[str, dict[str, Any]] = tomllib.loads((file or FILE).read_text())["shards"]
    return table


def shard_of(path: str, known: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the shard with the longest place that a test's path begins with; "" for none."""
    found = [
        (len(place), name)
        for name, shard in known.items()
        for place in shard["places"]
        if path.startswith(place)
    ]
    return max(found, default=(0, ""))[1]


def matches(entry: str, nodeid: str) -> bool:
    """Return whether an entry names a test."""
    place, _, pattern = entry.partition(" ~ ")
    path, _, name = nodeid.partition("::")
    there = f"/{path}".endswith(f"/{place}") or path.startswith(f"{place}/")
    return there and re.search(pattern, name) is not None


class Proof:
    """The plugin of one run of a shard."""

    def __init__(self, shard: str) -> None:
        self._shard = shard
        self._promises = promises()
        self._of: dict[str, list[Promise]] = {}
        self._unmatched: list[str] = []
        self._began = time.monotonic()
        self._counts: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        known = shards()
        chosen: list[pytest.Item] = []
        for item in items:
            proof = item.get_closest_marker("proof") is not None
            if proof and shard_of(item.nodeid, known) == self._shard:
                chosen.append(item)
                self._of[item.nodeid] = []
        for promise in self._promises.values():
            for entry in promise.entries:
                found = [item for item in items if matches(entry, item.nodeid)]
                self._unmatched += [] if found else [f"{promise.name}: no test is {entry}"]
                for item in found:
                    promise.daily += item.get_closest_marker("proof") is None
                    owners = self._of.get(item.nodeid, [promise])
                    owners += [] if promise in owners else [promise]
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in self._of])
        items[:] = chosen

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        lines = report.capstdout.splitlines() if report.when == "call" else []
        if report.when == "call" or not report.passed:
            self._counts[report.outcome] += 1
        for promise in self._of[report.nodeid]:
            if report.when == "call" or not report.passed:
                promise.counts[report.outcome] += 1
                promise.figures += [json.loads(one) for one in lines if one.startswith('{"')]
            if report.outcome in ("failed", "skipped"):
                promise.failed.append(f"{report.outcome}: {report.nodeid}")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        whole = json.loads(REPORT.read_text()) if REPORT.exists() else {}
        whole.setdefault("shards", {})[self._shard] = {
            "commit": commit(), "seconds": round(time.monotonic() - self._began), **self._counts,
            "unmatched": self._unmatched,
        }  # fmt: skip
        table = whole.setdefault("promises", {})
        for name in table.keys() - self._promises.keys():
            del table[name]
        for name, promise in self._promises.items():
            record = table.setdefault(name, {})
            record |= {"says": promise.says, "tests of make test": promise.daily}
            record.setdefault("shards", {}).pop(self._shard, None)
            if promise.counts:
                record["shards"][self._shard] = promise.record()
        REPORT.write_text(json.dumps(whole, ensure_ascii=False, indent=1) + "\n")
        if session.exitstatus == 0 and self._unmatched:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for promise in self._promises.values():
            if promise.counts:
                word = "FAILS" if promise.failed else "holds"
                terminalreporter.write_line(f"{word}  {promise.name}")
        for one in self._unmatched:
            terminalreporter.write_line(one)


def commit() -> str:
    """Return the commit that the work tree stands on; "" outside a repository."""
    said = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return said.stdout.strip()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", metavar="NAME", help="run the proofs of this shard")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--shard")
    if name is None:
        return
    if name not in shards():
        raise pytest.UsageError(f"no shard is called {name}: {', '.join(shards())}")
    config.pluginmanager.register(Proof(name), "proof")
