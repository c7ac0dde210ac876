"""The program as `pip install .` and `pipx install .` install it: complete, run from anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGES, ROOT
from tests.support.process import environment
from tests.support.requirements import need


def run(*words: str, folder: Path, **settings: str) -> str:
    done = subprocess.run(
        words, cwd=folder, env=environment(folder, **settings), text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout


def sources() -> list[str]:
    listed = run(
        need("git"), "ls-files", "--cached", "--others", "--exclude-standard", folder=ROOT
    ).split()
    return [name for name in listed if (ROOT / name).is_file()]


def copy_of_tree(tree: Path) -> None:
    for name in sources():
        if not name.startswith("tests/"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tree / name)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the contents of a wheel of this tree."""
    home = tmp_path_factory.mktemp("installed")
    copy_of_tree(home / "tree")
    run(
        sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
        "--no-index", "--disable-pip-version-check", "--target", str(home / "site"), ".",
        folder=home / "tree",
    )  # fmt: skip
    return home / "site"


def test_every_file_of_the_program_is_installed_and_nothing_else(installed: Path) -> None:
    wanted = {name for name in sources() if name.partition("/")[0] in PACKAGES}
    there = {
        path.relative_to(installed).as_posix()
        for package in PACKAGES
        for path in (installed / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert sorted(wanted ^ there) == []
    tops = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert tops == {*PACKAGES, "bin"}


def test_the_steps_of_the_docs_leave_nothing_of_a_newer_version(tmp_path: Path) -> None:
    """A migration that stayed would let the old version serve a schema that it does not know."""
    block = (
        (ROOT / "docs" / "how-to/deploy.md").read_text().split("python3 -m venv /opt/carteiro\n")[1]
    )
    steps = block.partition("\ninstall ")[0].splitlines()
    assert "requirements.lock" in steps[0]
    tree, site = tmp_path / "tree", tmp_path / "site"
    copy_of_tree(tree)
    newer = Path("gateway", "migrations", "9999_newer.sql")
    (tree / newer).write_text("select 1;")
    pip = f"{sys.executable} -m pip"
    script = "\n".join(["set -e", *steps[1:]]).replace("/opt/carteiro/bin/pip", pip)
    offline = {
        "PIP_TARGET": str(site), "PIP_UPGRADE": "1", "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }  # fmt: skip
    run("sh", "-c", script, folder=tree, **offline)
    assert (site / newer).exists()
    (tree / newer).unlink()
    run("sh", "-c", script, folder=tree, **offline)
    assert (site / newer.with_name("0001_accounts.sql")).exists()
    assert not (site / newer).exists()


def test_the_demo_runs_from_another_folder(installed: Path, tmp_path: Path) -> None:
    anywhere = {"PYTHONPATH": str(installed)}
    found = run(
        sys.executable, "-c", "import gateway; print(gateway.__file__)", folder=tmp_path, **anywhere
    )
    assert Path(found.strip()).is_relative_to(installed)
    said = run(
        sys.executable, os.fspath(installed / "bin" / "carteiro"), "demo", "--once",
        folder=tmp_path, **anywhere,
    )  # fmt: skip
    assert "every event arrived once, with a valid signature" in said


def test_postgresql_without_its_driver_says_how_to_install_it(tmp_path: Path) -> None:
    # As after `pipx install .`, which leaves the extra out.
    program = (
        "import sys; sys.modules['asyncpg'] = None; "
        "from gateway.__main__ import main; sys.exit(main(['migrate']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60,
        env=environment(tmp_path, CARTEIRO_DATABASE__URL="postgresql://u@127.0.0.1:1/x"),
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("carteiro: PostgreSQL needs the package asyncpg")
    assert "pip install asyncpg" in done.stderr
    assert done.stderr.count("\n") == 1
