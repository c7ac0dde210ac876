"""The proof fails when a promise is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.architecture.tree import ROOT
from tests.proof import __main__ as proof
from tests.proof.commands import counts_of, run, select
from tests.proof.outcome import Outcome


@pytest.fixture(autouse=True)
def _logging_put_back() -> Iterator[None]:
    """Put the logging of this process back, which the proof sets up as a program."""
    yield
    structlog.reset_defaults()


async def broken(seed: int) -> Outcome:
    raise RuntimeError("out of order")


async def good(seed: int) -> Outcome:
    print("chatter of a run")
    return Outcome({"seed_seen": seed})


def test_a_line_that_breaks_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "LINES", {"broken": broken, "good": good})
    assert proof.main(["--seed", "7"]) == 1
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["line"], first["pass"]) == ("broken", False)
    assert first["reasons"] == ["RuntimeError: out of order"]
    assert (second["pass"], second["seed"], second["figures"]) == (True, 7, {"seed_seen": 7})


def test_all_lines_good_is_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "LINES", {"good": good})
    assert proof.main(["good"]) == 0


@pytest.mark.slow
def test_a_line_that_is_not_there_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.proof", "nothing"],
        cwd=ROOT, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no line nothing" in done.stderr


def test_a_record_that_did_not_pass_is_a_reason() -> None:
    outcome = Outcome()
    outcome.add("sqlite", {"pass": False, "findings": ["1 lost"]})
    outcome.add("postgres", {"pass": True, "lost": 0})
    assert outcome.reasons == ["sqlite: ['1 lost']"]


TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert False
def test_skipped(): pytest.skip("needs a unicorn")
"""


@pytest.mark.slow
async def test_a_failing_selection_is_counted_and_named(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(TESTS)
    outcome = Outcome()
    await select(
        outcome, str(file), "-p", "tests.support.require_all", "--rootdir", str(tmp_path),
        at_least=3,
    )  # fmt: skip
    assert (outcome.figures["tests"], outcome.figures["failed"]) == (3, 2)
    assert any("test_bad" in reason for reason in outcome.reasons)


@pytest.mark.slow
async def test_a_selection_of_too_few_tests_does_not_hold(tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text("def test_good(): pass\n")
    outcome = Outcome()
    await select(outcome, str(file), "--rootdir", str(tmp_path), at_least=2)
    assert outcome.reasons == ["1 tests, wanted 2"]


def test_counts_come_from_the_record(tmp_path: Path) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(
        "<testsuites><testsuite><testcase classname='a' name='b' time='1.5'/>"
        "<testcase classname='a' name='c' time='0.5'><failure/></testcase>"
        "</testsuite></testsuites>"
    )
    counts = counts_of(file)
    assert (counts.tests, counts.failed, counts.seconds) == (2, 1, 2.0)
    assert counts.failures == ("a.c",)


async def test_a_command_that_hangs_is_killed() -> None:
    ended = await run([sys.executable, "-c", "import time; time.sleep(60)"], seconds=0.5)
    assert ended.status == -9
    assert "killed after" in ended.last_words
