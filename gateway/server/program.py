"""Names what this program is: its version and commit, and the roles of a process."""

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

Role = Literal["api", "worker", "all"]
ROLES: tuple[Role, ...] = ("api", "worker", "all")

UNKNOWN = "unknown"
PACKAGE = Path(__file__).parents[1]
REVISION = "revision.txt"
"""The file with the commit that `make release` puts into the package."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHOWN = 12


@cache
def program_version() -> str:
    """Return the installed version, 0 when the package is not installed."""
    try:
        return version("carteiro")
    except PackageNotFoundError:  # run from a source tree
        return "0"


@cache
def program_revision() -> str:
    """Return the first digits of the commit of this program, or `unknown`."""
    return revision_of(PACKAGE)


def revision_of(package: Path) -> str:
    """Return the commit of a package: as released, or the HEAD of the checkout around it."""
    stamp = _text(package / REVISION)
    commit = stamp if stamp is not None else _head(package.parent / ".git")
    return commit[:_SHOWN] if commit is not None and _COMMIT.fullmatch(commit) else UNKNOWN


def _head(git: Path) -> str | None:
    """Return the commit that is checked out; it may be the tree of `git worktree`."""
    link = _text(git) if git.is_file() else None
    if link is not None:
        git = git.parent / link.removeprefix("gitdir: ")
    head = _text(git / "HEAD")
    if head is None or not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    shared = git / (_text(git / "commondir") or ".")
    loose = _text(shared / name)
    if loose is not None:
        return loose
    packed = _text(shared / "packed-refs") or ""
    return next(
        (line.split()[0] for line in packed.splitlines() if line.endswith(f" {name}")), None
    )


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
