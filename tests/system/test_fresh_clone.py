"""The first steps of a new user in a clone of the committed files: demo, tests, a server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.support.process import clean_environment, free_port
from tests.support.requirements import need

SET_UP_SECONDS = 600
DEMO_SECONDS, MEGABYTES = 60, 250
"""Bars of the first demo: its time, and what it installs. Every package is downloaded."""
LINK = re.compile(r"(http://\S+/console/first-account\?token=\S+)")

pytestmark = pytest.mark.timeout(2 * SET_UP_SECONDS)


def make(folder: Path, *words: str, **settings: str) -> str:
    """Run a target to its end; return what it printed."""
    done = subprocess.run(
        [need("make"), *words], cwd=folder, env=clean_environment() | settings,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SET_UP_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-2_000:]
    return done.stdout


def test_a_clone_demonstrates_tests_and_serves(tmp_path: Path) -> None:
    folder = tmp_path / "carteiro"
    clone = [need("git"), "clone", "--quiet", "--no-hardlinks", f"file://{ROOT}", str(folder)]
    subprocess.run(clone, check=True, timeout=120)
    began = time.monotonic()
    said = make(folder, "demo", "ARGS=--once", PIP_NO_CACHE_DIR="1")
    seconds = time.monotonic() - began
    size = sum(path.lstat().st_blocks for path in (folder / ".venv").rglob("*")) * 512 / 1_000_000
    print(json.dumps({"first_demo_s": round(seconds, 1), "venv_mb": round(size, 1)}))
    assert "every event arrived once, with a valid signature" in said
    assert seconds < DEMO_SECONDS
    assert 1 < size < MEGABYTES
    assert " passed" in make(folder, "test-fast")
    serves(folder)


def serves(folder: Path) -> None:
    """Start the server; its link for the first account answers, and SIGTERM ends it."""
    settings = {"CARTEIRO_SERVER__PORT": str(free_port())}
    with subprocess.Popen(
        [need("make"), "run"], cwd=folder, env=clean_environment() | settings, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            link = next(found[1] for line in process.stdout if (found := LINK.search(line)))
            with urllib.request.urlopen(link, timeout=10) as answer:
                assert answer.status == 200
            assert (folder / "data" / "carteiro.db").is_file()
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
