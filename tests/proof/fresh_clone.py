"""The first steps of a new user: clone, demo, test, run; and the cost of the first demo."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
import time
import urllib.request
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.proof.commands import clean_environment, counts_of, run
from tests.proof.outcome import Outcome
from tests.support.process import free_port

TEST_SECONDS = 600
SET_UP_SECONDS = 600
START_SECONDS = 60
FIRST_DEMO_SECONDS = 60
FIRST_DEMO_MEGABYTES = 250
LINK = re.compile(r"(http://\S+/console/first-account\?token=\S+)")


async def fresh_clone(seed: int) -> Outcome:
    """Run `make demo ARGS=--once`, `make test` and `make run` in a clone of the committed files."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="carteiro-clone-") as home:
        folder = Path(home) / "carteiro"
        if await _cloned(outcome, folder):
            await _demo(outcome, folder)
            await _test(outcome, folder)
            await _serve(outcome, folder)
    return outcome


async def first_demo(seed: int) -> Outcome:
    """Run the first `make demo ARGS=--once` of a clone: its time, and the size of the installation.

    Every package is downloaded: pip's cache is off.
    """
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="carteiro-first-demo-") as home:
        folder = Path(home) / "carteiro"
        if await _cloned(outcome, folder):
            seconds = await _demo(outcome, folder, PIP_NO_CACHE_DIR="1")
            megabytes = _size_of(folder / ".venv") / 1_000_000
            outcome.figures |= {
                "venv_mb": round(megabytes, 1),
                "pip_cache": "off",
                "bars": f"{FIRST_DEMO_SECONDS} s, {FIRST_DEMO_MEGABYTES} MB",
            }
            outcome.need(seconds < FIRST_DEMO_SECONDS, f"the first demo took {seconds:.0f} s")
            outcome.need(megabytes < FIRST_DEMO_MEGABYTES, f".venv has {megabytes:.0f} MB")
            outcome.need(megabytes > 1, "make demo installed nothing into .venv")
    return outcome


def _size_of(folder: Path) -> int:
    """Return the bytes that the files of a folder take on disk."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


async def _cloned(outcome: Outcome, folder: Path) -> bool:
    cloned = await run(
        ["git", "clone", "--quiet", "--no-hardlinks", f"file://{ROOT}", str(folder)],
        seconds=120,
    )
    if cloned.status:
        outcome.reasons.append(f"git clone: {cloned.last_words}")
        return False
    head = await run(["git", "rev-parse", "--short", "HEAD"], seconds=10, folder=folder)
    outcome.figures["commit"] = head.text.strip()
    return True


async def _demo(outcome: Outcome, folder: Path, **environment: str) -> float:
    """Run the demo; return its seconds."""
    began = time.monotonic()
    demo = await run(
        ["make", "demo", "ARGS=--once"],
        seconds=SET_UP_SECONDS,
        folder=folder,
        environment=environment,
    )
    seconds = time.monotonic() - began
    outcome.figures["demo_with_setup_s"] = round(seconds, 1)
    found = re.search(r"every event arrived once, with a valid signature", demo.text)
    outcome.need(demo.status == 0, f"make demo ended with {demo.status}: {demo.last_words}")
    outcome.need(found is not None, "make demo does not say that every event arrived once")
    table = re.search(r"(\d+) writes\s+(\d+) deliveries", demo.text)
    if table is not None:
        outcome.figures |= {"demo_writes": int(table[1]), "demo_deliveries": int(table[2])}
    return seconds


async def _test(outcome: Outcome, folder: Path) -> None:
    began = time.monotonic()
    test = await run(
        ["make", "test", "ARGS=-q --junitxml=junit.xml"],
        seconds=SET_UP_SECONDS + TEST_SECONDS,
        folder=folder,
        environment={"REQUIRE_ALL": "1"},
    )
    seconds = time.monotonic() - began
    outcome.figures["test_s"] = round(seconds, 1)
    outcome.need(test.status == 0, f"make test ended with {test.status}: {test.last_words}")
    outcome.need(seconds < TEST_SECONDS, f"make test took {seconds:.0f} s")
    if (folder / "junit.xml").exists():
        counts = counts_of(folder / "junit.xml")
        outcome.figures |= {"tests": counts.tests, "tests_failed": counts.failed}
        outcome.need(not counts.failures, f"failed: {', '.join(counts.failures[:10])}")


async def _serve(outcome: Outcome, folder: Path) -> None:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *("make", "run"),
        cwd=folder,
        env=clean_environment() | {"CARTEIRO_SERVER__PORT": str(port)},
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=STDOUT,
        start_new_session=True,
    )
    said = ""
    began = time.monotonic()
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            while not LINK.search(said) and (line := await process.stdout.readline()):
                said += line.decode(errors="replace")
        outcome.figures["run_ready_s"] = round(time.monotonic() - began, 2)
        link = LINK.search(said)
        outcome.need(link is not None, f"make run prints no link for the first account: {said}")
        if link is not None:
            status = await asyncio.to_thread(_status, link[1])
            outcome.figures["first_account_status"] = status
            outcome.need(status == 200, f"the first-account link answers {status}")
        made = (folder / "data" / "carteiro.db").is_file()
        outcome.need(made, "make run made no SQLite file in data/")
    except TimeoutError:
        outcome.reasons.append(f"make run is not ready after {START_SECONDS} s: {said}")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            async with asyncio.timeout(30):
                await process.communicate()
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()
            outcome.reasons.append("make run did not end within 30 s of SIGTERM")


def _status(url: str) -> int:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return int(answer.status)
