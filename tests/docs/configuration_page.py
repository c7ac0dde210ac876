"""Writes docs/reference/configuration.md from config.toml and its comments."""

import os
import re
from collections.abc import Iterator

from tests.architecture.tree import ROOT

HERE = "docs/reference"
KEY = re.compile(r"(\w+) = (.*)")
PAGE = re.compile(r"docs/[\w/-]+\.md(#[\w-]+)?")
TABLE = "\n| key | default | meaning |\n| --- | --- | --- |"


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    yield from _sections((ROOT / "config.toml").read_text())


def _sections(text: str) -> Iterator[str]:
    said: list[str] = []
    # The first paragraph is about the file.
    for line in text.partition("\n\n")[2].splitlines():
        if line.startswith("["):
            yield f"\n## {line.strip('[]')}\n{TABLE}"
        elif line.startswith("#"):
            said.append(line.removeprefix("#").strip())
        elif (key := KEY.match(line)) is not None:
            meaning = PAGE.sub(_link, " ".join(said)).replace("|", "\\|")
            yield f"| `{key[1]}` | `{key[2]}` | {meaning} |"
            said.clear()


def _link(found: re.Match[str]) -> str:
    path, _, anchor = found[0].partition("#")
    name = anchor or os.path.basename(path)
    return f"[{name}]({os.path.relpath(path, HERE)}{found[1] or ''})"
