"""A program tells the commit that it was made of."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gateway.server.program import UNKNOWN, revision_of
from tests.support.requirements import need


def git(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [need("git"), *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


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
