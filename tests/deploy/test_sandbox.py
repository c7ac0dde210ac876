"""The limits of the systemd unit, put on a gateway that works, since no systemd runs in tests."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.support.process import environment
from tests.support.requirements import need

UNIT = (ROOT / "docs/deploy/carteiro.service").read_text()
SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
SECONDS = 110
UNDER_MDWE = (
    "import ctypes, os, sys; libc = ctypes.CDLL(None, use_errno=True);"
    f"assert libc.prctl({SET_MDWE}, {REFUSE_EXEC_GAIN}, 0, 0, 0) == 0;"
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
STARTS = {"execve", "ptrace", "restart_syscall"}
"""Calls of strace's own start."""
AS_ROOT = {"fchown"}
"""SQLite gives its files to the owner of the database, but only when it runs as root."""


def demo(folder: Path, *before: str) -> subprocess.CompletedProcess[str]:
    """Serve, deliver and verify some events, then stop."""
    return subprocess.run(
        [*before, "-m", "gateway", "demo", "--once"], cwd=folder, env=environment(folder),
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip


def allowed() -> set[str]:
    """The system calls that the unit's filter allows."""
    found: set[str] = set()
    for line in re.findall(r"^SystemCallFilter=(.+)$", UNIT, re.M):
        names = {name for group in line.lstrip("~").split() for name in _calls(group)}
        found = found - names if line.startswith("~") else found | names
    return found


def _calls(group: str) -> set[str]:
    """The system calls of a set of systemd, and of the sets in it."""
    told = subprocess.run(
        [need("systemd-analyze"), "syscall-filter", "--no-pager", group],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    words = [line.strip() for line in told.stdout.splitlines()[1:]]
    names = {word for word in words if re.fullmatch(r"[a-z0-9_]+", word)}
    return names.union(*(_calls(word) for word in words if word.startswith("@")))


def test_a_gateway_at_work_makes_only_the_calls_that_the_unit_allows(tmp_path: Path) -> None:
    record = tmp_path / "calls"
    done = demo(
        tmp_path, need("strace"), "-f", "-qq", "-c", "-U", "name", "-o", str(record), sys.executable
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = set(re.findall(r"^(\w+)\s*$", record.read_text(), re.M)) - {"total", "syscall"}
    assert {"connect", "accept4", "fdatasync"} & made, made
    beyond = made - allowed() - STARTS
    assert beyond - (AS_ROOT if os.geteuid() == 0 else set()) == set()


def test_a_gateway_works_without_memory_that_is_writable_and_executable(tmp_path: Path) -> None:
    assert "\nMemoryDenyWriteExecute=yes\n" in UNIT
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(66, 0, 0, 0, 0) < 0 and ctypes.get_errno() == errno.EINVAL:
        pytest.skip("needs linux: 6.3 or newer for PR_SET_MDWE")
    done = demo(tmp_path, sys.executable, "-c", UNDER_MDWE)
    assert done.returncode == 0, done.stdout + done.stderr
