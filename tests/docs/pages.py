"""The pages of the docs, cut into fenced blocks and steps for the tests.

A comment on the line before a fence says how the tests treat the block:

    <!-- file: NAME -->       the tests write the block to this file
    <!-- terminal: NAME -->   the command stays; it runs beside those that follow
    <!-- prints -->           what the command before prints; … stands for anything
    <!-- stopped -->          the server is stopped meanwhile
    <!-- compose -->          compose.sh stands in for the container engine
    <!-- new machine -->      in an empty folder, with the backup and the key file
    <!-- older -->            on the database of an older release
    <!-- not run: REASON -->  left alone

A comment `<!-- step: WORDS -->` anywhere else is what a reader does in the console.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.architecture.tree import ROOT

PIECE = re.compile(
    r"^(?:<!-- (?P<note>[^\n]*) -->\n)?```(?P<language>\S*)\n(?P<text>.*?)^```$"
    r"|^<!-- step: (?P<step>[^\n]*) -->$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"<!-- (.*?) -->", re.DOTALL)
GENERATED = "<!-- Generated: "


@dataclass(frozen=True)
class Block:
    """One fenced block, or a step that a reader does by hand (then `language` is `step`)."""

    page: str
    line: int
    language: str
    text: str
    note: str

    @property
    def kind(self) -> str:
        """The first word of the note, `file: NAME` being `file`."""
        return self.note.partition(":")[0]

    @property
    def name(self) -> str:
        return self.note.partition(":")[2].strip()

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def names() -> list[str]:
    """Every page, as a path relative to the root."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def generated(page: str) -> bool:
    """Whether a program writes the page, but for its head."""
    return GENERATED in text_of(page)


def blocks(page: str) -> list[Block]:
    """The blocks and steps of a page, in order."""
    text = text_of(page)
    return [
        Block(
            page, text.count("\n", 0, piece.start()) + 1, piece["language"] or "", piece["text"],
            piece["note"] or "",
        )
        if piece["step"] is None
        else Block(page, text.count("\n", 0, piece.start()) + 1, "step", piece["step"], "step")
        for piece in PIECE.finditer(text)
    ]  # fmt: skip
