"""The commit before the fast paths, unpacked so that one run compares both trees."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

from tests.benchmarks import staged
from tests.benchmarks.children import ROOT

BASE = "5f7fff00afc82ff6b417958f9c458d9defeef395"


class NoEarlierCommit(RuntimeError):
    """The history of this clone lacks it."""


def check_out(folder: Path, commit: str = BASE) -> Path:
    """Unpack the tree of `commit` below `folder`; return it. Raise NoEarlierCommit."""
    archive, tree = folder / "before.tar", folder / "before"
    done = subprocess.run(
        ["git", "-C", ROOT, "archive", "--output", archive, commit],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoEarlierCommit(
            f"the commit to compare with, {commit[:12]}, is not in this clone: clone all of the "
            f"history ({' '.join(done.stderr.split())})"
        )
    with tarfile.open(archive) as packed:
        packed.extractall(tree, filter="data")
    archive.unlink()
    # It must stage its databases itself: its schema differs.
    shutil.copy(staged.__file__, tree / "tests" / "benchmarks")
    return tree
