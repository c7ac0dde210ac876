"""What the program makes on the disk is its user's alone; what it finds open, it names."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.__main__ import main
from tests.support.process import command

DEFAULT = {"CARTEIRO_DATABASE__URL": "sqlite:///data/carteiro.db"}


@pytest.fixture(autouse=True)
def _careless() -> Iterator[None]:
    """A user whose files are open to everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: mode(path) for path in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [("migrate",), ("user", "add", "a@example.com", "--name", "A", "--password-stdin"),
     ("secrets", "init")],
    ids=" ".join,
)  # fmt: skip
def test_so_does_every_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = command(*words, folder=tmp_path, stdin="correct horse battery\n", **DEFAULT)
    assert (done.returncode, done.stderr) == (0, "")
    assert mode(tmp_path / "data") == 0o700
    found = modes(tmp_path / "data")
    assert found
    assert set(found.values()) == {0o600}


def test_a_command_leaves_the_mask_of_its_process_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openapi"]) == 0
    assert os.umask(0) == 0


@pytest.mark.slow
def test_what_is_found_open_is_named_in_one_line_with_its_fix(tmp_path: Path) -> None:
    for words in (("migrate",), ("secrets", "init")):
        assert command(*words, folder=tmp_path, **DEFAULT).returncode == 0
    data = tmp_path / "data"
    data.chmod(0o755)
    (data / "carteiro.db").chmod(0o644)
    (data / "carteiro.key").chmod(0o640)
    done = command("migrate", folder=tmp_path, **DEFAULT)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith(
        "carteiro: warning: readable by other users: data (mode 0755), data/carteiro.key "
        "(mode 0640), data/carteiro.db (mode 0644)"
    )
    program, *fix = done.stderr.partition("; run: ")[2].split()
    assert (program, fix[0]) == ("chmod", "go-rwx")
    for name in fix[1:]:
        path = tmp_path / name
        if path.exists():  # SQLite takes the files beside its own away
            path.chmod(mode(path) & 0o700)
    assert command("migrate", folder=tmp_path, **DEFAULT).stderr == ""
