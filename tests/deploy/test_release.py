"""`make release` writes the same bytes from each checkout of a commit."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from gateway.server.program import UNKNOWN, program_version, revision_of
from tests.architecture.tree import ROOT
from tests.support.requirements import need

RUNBOOK = "https://example.com/runbook"


def git(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [need("git"), *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def release(clone: Path, out: Path) -> None:
    """Make a release of a fresh clone."""
    git("clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone), folder=ROOT)
    done = subprocess.run(
        [clone / ".ci" / "release", out, RUNBOOK], capture_output=True, text=True,
        env={"RELEASE_PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_two_releases_of_a_commit_are_identical(tmp_path: Path) -> None:
    for turn in ("one", "another-folder"):
        release(tmp_path / turn / "tree", tmp_path / turn / "dist")
    first, second = (tmp_path / turn / "dist" for turn in ("one", "another-folder"))
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in first.iterdir()}
    assert digests == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in second.iterdir()
    }
    name = f"carteiro-{program_version()}"
    assert set(digests) == {
        "SHA256SUMS", f"{name}.tar.gz", f"{name}-py3-none-any.whl", f"{name}-image.tar.gz",
        f"{name}.cdx.json",
    }  # fmt: skip
    lines = (first / "SHA256SUMS").read_text().splitlines()
    assert {line.split()[1]: line.split()[0] for line in lines} == {
        file: digest for file, digest in digests.items() if file != "SHA256SUMS"
    }
    commit = git("rev-parse", "HEAD", folder=ROOT)
    with zipfile.ZipFile(first / f"{name}-py3-none-any.whl") as wheel:
        assert wheel.read("gateway/revision.txt").decode().strip() == commit
    with tarfile.open(first / f"{name}-image.tar.gz") as image:
        alerts = image.extractfile(f"{name}-image/dashboards/alerts.yml")
        assert alerts is not None
        links = [line for line in alerts.read().decode().splitlines() if "runbook_url" in line]
        assert links
        assert all(f"runbook_url: {RUNBOOK}#" in line for line in links)
        assert f"{name}-image/docs/runbook.md" in image.getnames()
    bom = json.loads((first / f"{name}.cdx.json").read_text())
    assert {"aiohttp", "asyncpg"} <= {component["name"] for component in bom["components"]}
    print(json.dumps({"release": name, "identical files": len(digests)}))


@pytest.mark.slow
def test_a_release_is_made_of_a_commit(tmp_path: Path) -> None:
    clone = tmp_path / "tree"
    git("clone", "--quiet", str(ROOT), str(clone), folder=ROOT)
    (clone / "README.md").write_text("changed")
    done = subprocess.run(
        [clone / ".ci" / "release", tmp_path / "dist"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "changes that are not committed" in done.stderr
    assert not (tmp_path / "dist").exists()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout with one commit."""
    git("init", "--quiet", "--initial-branch=main", str(tmp_path), folder=tmp_path)
    (tmp_path / "gateway").mkdir()
    commit(tmp_path)
    return tmp_path


def commit(checkout: Path) -> None:
    git(
        "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet",
        "--allow-empty", "--message", "One", folder=checkout,
    )  # fmt: skip


@pytest.mark.parametrize("state", ["branch", "packed", "detached", "worktree"])
def test_a_checkout_tells_its_commit(state: str, checkout: Path) -> None:
    if state == "packed":
        git("pack-refs", "--all", folder=checkout)
    elif state == "detached":
        git("checkout", "--quiet", "--detach", folder=checkout)
    head = git("rev-parse", "HEAD", folder=checkout)
    if state == "worktree":
        git("worktree", "add", "--quiet", "-b", "other", "tree", folder=checkout)
        checkout /= "tree"
    assert revision_of(checkout / "gateway") == head[:12]


def test_a_released_package_tells_the_commit_of_its_release(checkout: Path) -> None:
    (checkout / "gateway" / "revision.txt").write_text("ab" * 20 + "\n")
    assert revision_of(checkout / "gateway") == "abababababab"


@pytest.mark.parametrize("stamp", [None, "", "main", "\xff"])
def test_a_package_without_a_commit_says_so(stamp: str | None, tmp_path: Path) -> None:
    if stamp is not None:
        (tmp_path / "revision.txt").write_text(stamp, "latin-1")
    assert revision_of(tmp_path) == UNKNOWN


def test_the_changelog_has_the_version() -> None:
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line[:3] == "## "
    ]
    dated = next(line for line in headings if line != "## [Unreleased]")
    assert headings[0] == "## [Unreleased]" or dated.startswith(f"## [{program_version()}] - ")
