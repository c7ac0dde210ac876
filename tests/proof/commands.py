"""Run commands to their end, and keep their last output for errors."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.architecture.tree import ROOT
from tests.proof.outcome import Outcome

LAST_WORDS = 15
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Ended:
    """The exit status of a command and its output."""

    status: int
    text: str

    @property
    def last_words(self) -> str:
        return "\n".join(COLOURS.sub("", self.text).strip().splitlines()[-LAST_WORDS:])


NOT_HANDED_ON = (
    "CARTEIRO_", "MAKE", "PYTEST_", "VIRTUAL_ENV", "PYTHONPATH",
    # The folder of a PostgreSQL server of this process, if one was started.
    "XDG_RUNTIME_DIR",
)  # fmt: skip


def clean_environment() -> dict[str, str]:
    """Return this environment without settings of the product, a virtual environment or servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(NOT_HANDED_ON)}


async def run(
    words: Sequence[str],
    *,
    seconds: float,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command; one that exceeds its time is killed with its children."""
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env=clean_environment() | dict(environment or {}),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = await process.communicate()
        out += f"\nkilled after {seconds:.0f} s".encode()
    return Ended(process.returncode or 0, out.decode(errors="replace"))


@dataclass(frozen=True)
class Counts:
    """The counts in pytest's own record of a run."""

    tests: int
    failed: int
    skipped: int
    seconds: float
    failures: tuple[str, ...]


def counts_of(file: Path) -> Counts:
    """Read a junit file. Raise OSError when there is none."""
    cases = list(ElementTree.parse(file).iter("testcase"))
    failures = [
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    return Counts(
        len(cases),
        len(failures),
        sum(case.find("skipped") is not None for case in cases),
        round(sum(float(case.get("time") or 0) for case in cases), 1),
        tuple(failures),
    )


async def select(outcome: Outcome, *words: str, at_least: int, seconds: float = 600) -> None:
    """Run tests, none of which may skip, and add their counts to `outcome`."""
    with tempfile.TemporaryDirectory(prefix="carteiro-proof-") as home:
        file = Path(home) / "junit.xml"
        ended = await run(
            [sys.executable, "-m", "pytest", *words, "-q", f"--junitxml={file}"],
            seconds=seconds,
            environment={"REQUIRE_ALL": "1"},
        )
        if not file.exists():
            outcome.reasons.append(f"pytest made no record: {ended.last_words}")
            return
        counts = counts_of(file)
    outcome.figures |= {
        "tests": counts.tests,
        "failed": counts.failed,
        "test_seconds": counts.seconds,
    }
    outcome.need(counts.tests >= at_least, f"{counts.tests} tests, wanted {at_least}")
    outcome.need(not counts.failures, f"failed: {', '.join(counts.failures)}")
    outcome.need(ended.status == 0, f"pytest ended with {ended.status}: {ended.last_words}")
