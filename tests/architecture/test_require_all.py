"""REQUIRE_ALL=1 turns a skip into a failure, for a test and for a whole module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

pytestmark = pytest.mark.slow
SKIPS = {
    "in a test": "import pytest\ndef test_it(): pytest.skip('needs a unicorn')\n",
    "of a module": "import pytest\npytest.skip('needs a unicorn', allow_module_level=True)\n",
}


def run(folder: Path, source: str, require_all: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_skipping.py").write_text(source)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-rs"),
            *("-p", "tests.support.require_all", "-p", "no:cacheprovider"),
            *("--rootdir", str(folder), str(folder)),
        ],
        env=os.environ | {"REQUIRE_ALL": require_all, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("kind", SKIPS)
def test_a_skip_fails_when_all_is_required(kind: str, tmp_path: Path) -> None:
    done = run(tmp_path, SKIPS[kind], "1")
    assert done.returncode not in (0, 5), done.stdout
    assert "needs a unicorn" in done.stdout


@pytest.mark.parametrize("kind", SKIPS)
def test_a_skip_is_a_skip_otherwise(kind: str, tmp_path: Path) -> None:
    done = run(tmp_path, SKIPS[kind], "0")
    assert done.returncode in (0, 5), done.stdout
    assert "1 skipped" in done.stdout
    assert "needs a unicorn" in done.stdout
