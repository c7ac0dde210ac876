"""What the program makes on the disk is its user's alone; what it finds open, it names."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.__main__ import main
from tests.support.process import carteiro, command, environment, serving_process

DEFAULT = {"CARTEIRO_DATABASE__URL": "sqlite:///data/carteiro.db"}
ENDINGS = ("", "-wal", "-shm", ".lock")


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
def test_serve_makes_files_for_its_user_alone(tmp_path: Path) -> None:
    with serving_process(tmp_path, **DEFAULT) as serving:
        serving.ask("/api/none")
        data = tmp_path / "data"
        assert mode(data) == 0o700
        names = {f"carteiro.db{ending}" for ending in ENDINGS} | {"carteiro.key"}
        assert modes(data) == dict.fromkeys(names, 0o600)
        assert not [line for line in serving.lines if line["event"] == "files_open_to_others"]


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


@pytest.mark.slow
def test_so_does_the_engine_alone(tmp_path: Path) -> None:
    key = tmp_path / "app.key"
    made = carteiro("secrets", "init", folder=tmp_path, CARTEIRO_SECRETS__KEY_FILE=str(key))
    assert made.returncode == 0, made.stderr
    process = subprocess.Popen(
        [sys.executable, "-m", "outbox", "sqlite:///own/app.db", str(key)],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("draining")
        assert mode(tmp_path / "own") == 0o700
        assert set(modes(tmp_path / "own").values()) == {0o600}
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.slow
def test_what_is_found_open_is_named_in_one_line(tmp_path: Path) -> None:
    assert carteiro("migrate", folder=tmp_path, **DEFAULT).returncode == 0
    with serving_process(tmp_path, **DEFAULT) as serving:
        serving.end()
    data = tmp_path / "data"
    data.chmod(0o755)
    (data / "carteiro.db").chmod(0o644)
    (data / "carteiro.key").chmod(0o640)
    text = (
        "readable by other users: data (mode 0755), data/carteiro.key (mode 0640), "
        "data/carteiro.db (mode 0644); run: chmod go-rwx data data/carteiro.key data/carteiro.db"
    )
    done = carteiro("migrate", folder=tmp_path, **DEFAULT)
    assert done.returncode == 0
    # SQLite gives the files beside the database its mode, and takes them away with itself.
    assert done.stderr.startswith("carteiro: warning: readable by other users: data (mode 0755), ")
    assert done.stderr.count("\n") == 1
    with serving_process(tmp_path, **DEFAULT) as serving:
        [line] = [line for line in serving.lines if line["event"] == "files_open_to_others"]
        assert line["level"] == "warning"
        for part in text.partition("; run")[0].split(", "):
            assert part in line["text"]
        serving.end()
    # The fix that is named is one.
    fix = line["text"].partition("; run: ")[2].split()
    existing = [word for word in fix[2:] if (tmp_path / word).exists()]
    subprocess.run([*fix[:2], *existing], cwd=tmp_path, check=True)
    assert carteiro("migrate", folder=tmp_path, **DEFAULT).stderr == ""


def test_another_folder_is_for_whoever_chose_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = command("migrate", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert mode(tmp_path / "carteiro.db") == 0o600


def test_a_command_leaves_the_mask_of_its_process_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["openapi"]) == 0
    assert os.umask(0) == 0
