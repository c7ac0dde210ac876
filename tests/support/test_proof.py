"""The proof fails when a promise has no test, or one that fails or skips."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.support.proof import matches, promises

FILES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
TESTS = """
import pytest
def test_good(): print('{"lost": 0}')
def test_bad(): assert False
def test_skipped(): pytest.skip("needs a unicorn")
"""
TABLE = """
good = { says = "It is good.", tests = ["test_it.py ~ good"] }
bad = { says = "It is bad.", tests = ["test_it.py"] }
lost = { says = "It is gone.", tests = ["test_it.py ~ good", "test_gone.py"] }
"""


@pytest.mark.parametrize("name", promises())
def test_each_entry_names_files_that_exist(name: str) -> None:
    for entry in promises()[name].entries:
        place = entry.partition(" ~ ")[0]
        assert any(matches(place, file) for file in FILES), entry


@pytest.mark.slow
def test_what_fails_skips_or_is_gone_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "proof.toml").write_text(TABLE)
    (tmp_path / "conftest.py").write_text(
        f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support import proof\n"
        "proof.FILE = Path(__file__).with_name('proof.toml')\n"
        "from tests.support.proof import pytest_addoption, pytest_configure\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--proof=", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    records = {
        record["line"]: record for record in json.loads((tmp_path / "proof.json").read_text())
    }
    assert done.returncode == 1, done.stdout
    assert {name: record["pass"] for name, record in records.items()} == {
        "good": True, "bad": False, "lost": False,
    }  # fmt: skip
    assert records["good"]["figures"] == [{"lost": 0}]
    assert [reason.split(":")[0] for reason in records["bad"]["reasons"]] == ["failed", "skipped"]
    assert records["lost"]["reasons"] == ["no test is test_gone.py"]
