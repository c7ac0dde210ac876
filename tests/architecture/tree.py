"""The source tree for the architecture tests: modules, text files, declared rooms."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("outbox", "gateway")
DOORS = ("rest", "graphql", "console", "mcp")
NOT_SOURCE = {".hypothesis", "node_modules", "__pycache__"}
NOT_SOURCE_AT_THE_TOP = {".git", ".venv", "data", "build", "dist"}


@cache
def modules() -> tuple[Path, ...]:
    """Return every .py file of the product, as sorted paths relative to the root."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT) for path in found))


def files() -> Iterator[Path]:
    """Yield every file that a clone contains, whatever its kind."""
    for folder, names, here in os.walk(ROOT):
        top = Path(folder) == ROOT
        names[:] = [
            name
            for name in names
            if name not in NOT_SOURCE
            and not (top and name in NOT_SOURCE_AT_THE_TOP)
            and not name.endswith((".egg-info", "_cache"))
        ]
        for name in here:
            # In a worktree this is a file, and names the place of its clone.
            if name != ".git":
                yield Path(folder, name)


def texts() -> Iterator[tuple[Path, str]]:
    """Yield every text file of the tree with its text; skip binary files."""
    for path in files():
        data = path.read_bytes()
        if b"\0" in data:
            continue
        try:
            yield path.relative_to(ROOT), data.decode()
        except UnicodeDecodeError:
            continue


def doors() -> list[str]:
    """Return the existing door packages, dotted."""
    return [f"gateway.{door}" for door in DOORS if any((ROOT / "gateway" / door).glob("*.py"))]
