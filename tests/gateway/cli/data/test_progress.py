"""Progress: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.data.progress_bar import LINE_SECONDS, WIDTH, Progress
from tests.support.clocks import Stopped
from tests.support.process import command, environment


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_elsewhere_a_line_comes_now_and_then() -> None:
    clock, out = Stopped(), io.StringIO()
    with Progress("backup", out, clock) as progress:
        for tick in range(1001):
            clock.now = tick * LINE_SECONDS / 400
            progress.at(tick / 1000, "events")
    assert out.getvalue() == "backup: 40%, events\nbackup: 80%, events\n"


def test_on_a_terminal_the_bar_grows_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    clock, out = Stopped(), Screen()
    with Progress("copy", out, clock) as progress:
        for tick in range(101):
            clock.now = float(tick)
            progress.at(tick / 100, "a_table_with_a_long_name" * 3)
    shown = out.getvalue().split("\r\x1b[K")
    bars = [line.count("█") for line in shown if "█" in line]
    assert bars == sorted(bars)
    assert bars[-1] == WIDTH
    assert all(len(line) < 60 for line in shown), "a longer line would scroll"
    assert " 0:50 " in shown[50]
    assert shown[-1] == "", "the line is free again"


@pytest.mark.proof
def test_a_command_draws_its_bar_on_a_terminal_alone(tmp_path: Path) -> None:
    done = command(
        "user", "add", "ana@example.com", "--name", "Ana", "--password-stdin",
        folder=tmp_path, stdin="correct horse\n",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert command("backup", "b", folder=tmp_path).returncode == 0
    ours, theirs = pty.openpty()
    restored = subprocess.run(
        [sys.executable, "-m", "gateway", "restore", "b", "--overwrite"],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=theirs,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs)
    shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert restored.returncode == 0, shown
    assert restored.stdout.startswith(b"Restored "), "results stay on standard output"
    assert "\r\x1b[Krestore: indexes and keys\r\x1b[K" in shown
