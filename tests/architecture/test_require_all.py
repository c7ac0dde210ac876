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
    "test_one.py": "import pytest\ndef test_it(): pytest.skip('needs a unicorn')\n",
    "test_module.py": "import pytest\npytest.skip('needs a unicorn', allow_module_level=True)\n",
}


@pytest.mark.parametrize(
    ("required", "told"), [("1", "1 failed, 1 error"), ("0", "2 skipped")], ids=["all", "what is"]
)
def test_a_skip_fails_when_all_is_required(required: str, told: str, tmp_path: Path) -> None:
    for name, source in SKIPS.items():
        (tmp_path / name).write_text(source)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-rs", "--continue-on-collection-errors"),
            *("-p", "tests.support.require_all", "-p", "no:cacheprovider"),
            *("--rootdir", str(tmp_path), str(tmp_path)),
        ],
        env=os.environ | {"REQUIRE_ALL": required, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode not in (0, 5)) == (required == "1"), done.stdout
    assert told in done.stdout
    assert "needs a unicorn" in done.stdout
