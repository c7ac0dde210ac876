"""The proof fails when a promise has no test, or one that fails or skips."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.support.proof import matches, promises, shard_of, shards

FILES = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
TESTS = """
import pytest
pytestmark = pytest.mark.proof
def test_good(): print('{"lost": 0}')
def test_bad(): assert False
def test_skipped(): pytest.skip("needs a unicorn")
"""
TABLE = """
[shards.mine]
places = ["test_it.py"]
[shards.other]
places = ["test_"]
[promises]
good = { says = "It is good.", tests = ["test_it.py ~ good", "test_daily.py"] }
bad = { says = "It is bad.", tests = ["test_it.py"] }
lost = { says = "It is gone.", tests = ["test_gone.py"] }
"""


@pytest.mark.parametrize("name", promises())
def test_each_entry_names_files_that_exist(name: str) -> None:
    for entry in promises()[name].entries:
        place = entry.partition(" ~ ")[0]
        assert any(matches(place, file) for file in FILES), entry


def test_each_file_of_tests_has_a_shard_and_each_place_a_file() -> None:
    known = shards()
    assert [file for file in FILES if not shard_of(file, known)] == []
    places = [place for shard in known.values() for place in shard["places"]]
    assert [one for one in places if not any(file.startswith(one) for file in FILES)] == []
    rooms = [room for shard in known.values() for room in shard["rooms"]]
    assert [room for room in rooms if not (ROOT / room).exists()] == []


def test_what_fails_skips_or_is_gone_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "test_daily.py").write_text("def test_daily(): assert False")
    (tmp_path / "proof.toml").write_text(TABLE)
    (tmp_path / "conftest.py").write_text(
        f"import sys\nfrom pathlib import Path\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.support import proof\n"
        "proof.FILE = Path(__file__).with_name('proof.toml')\n"
        "from tests.support.proof import pytest_addoption, pytest_configure as configure\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'proof')\n"
        "    configure(config)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--shard=mine", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    report = json.loads((tmp_path / "proof.json").read_text())
    shard = report["shards"]["mine"]
    assert (shard["passed"], shard["failed"], shard["skipped"]) == (1, 1, 1)
    assert shard["unmatched"] == ["lost: no test is test_gone.py"]
    good, bad, lost = (report["promises"][name] for name in ("good", "bad", "lost"))
    assert good["shards"]["mine"] == {"pass": True, "tests": 1, "figures": [{"lost": 0}]}
    assert good["tests of make test"] == 1
    assert [one.split(":")[0] for one in bad["shards"]["mine"]["reasons"]] == ["failed", "skipped"]
    assert lost["shards"] == {}
