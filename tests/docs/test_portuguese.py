"""README.pt-BR.md and docs/pt say what the English pages say: the same parts, blocks and links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway import texts
from tests.architecture.tree import ROOT
from tests.docs.pages import blocks, text_of

ENGLISH, PORTUGUESE = "README.md", "README.pt-BR.md"
TWINS = {
    f"docs/pt/{path.name}": next(
        page.relative_to(ROOT).as_posix()
        for page in (ROOT / "docs").rglob(path.name)
        if page.parent.name != "pt"
    )
    for path in sorted((ROOT / "docs" / "pt").glob("*.md"))
}
"""The English page of each page in Portuguese."""
COMMENT = re.compile(r"\s*#.*$", re.M)
EN, PT = texts.of("en"), texts.of("pt-BR")


def lines(page: str, *marks: str) -> list[int]:
    """Return how many lines of a page start with each mark."""
    return [len(re.findall(f"^{re.escape(mark)}", text_of(page), re.M)) for mark in marks]


@pytest.mark.parametrize("page", TWINS)
def test_a_page_has_the_parts_and_blocks_of_the_english_one(page: str) -> None:
    english = TWINS[page]
    told, there = (
        [(block.language, block.note, block.text) for block in blocks(one)]
        for one in (page, english)
    )
    assert told == there
    marks = ("# ", "## ", "- ", "| ")
    assert lines(page, *marks) == lines(english, *marks)
    assert f"](../pt/{Path(page).name})" in text_of(english)
    assert f"](../{english.removeprefix('docs/')})" in text_of(page)


def commands(page: str) -> list[str]:
    return [COMMENT.sub("", block.text) for block in blocks(page) if block.language == "sh"]


def links(page: str) -> set[str]:
    return set(re.findall(r'(?:\]\(|srcset="|src=")([^)"]+)', text_of(page)))


def test_the_readme_has_the_same_parts_commands_links_and_figures() -> None:
    marks = ("## ", "- ", "| ", "<!-- ")
    assert lines(PORTUGUESE, *marks) == lines(ENGLISH, *marks)
    assert commands(PORTUGUESE) == commands(ENGLISH)
    figures = [
        set(re.findall(r"(?<![\w.])\d[\d.:]*(?!\w)", text_of(page)))
        for page in (ENGLISH, PORTUGUESE)
    ]
    assert figures[1] == figures[0]
    # Each links to the other one, and the one in Portuguese to all pages in Portuguese.
    assert ENGLISH in links(PORTUGUESE)
    assert PORTUGUESE in links(ENGLISH)
    assert links(PORTUGUESE) >= TWINS.keys()
    linked = links(ENGLISH) & set(TWINS.values())
    told = links(PORTUGUESE) - TWINS.keys() | linked
    assert told - {ENGLISH} == links(ENGLISH) - {PORTUGUESE}
    assert [link for link in told if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_screens_of_the_readme_are_those_of_the_program() -> None:
    demo, first, _, _ = (block.text for block in blocks(PORTUGUESE) if block.language == "text")
    for key in ("demo.heading", "demo.address_shop", "demo.sign_in", "demo.password"):
        assert PT(key) in demo
    header = [PT(key) for key in EN if key.startswith("demo.column.")]
    assert "  ".join(header) in re.sub(r" {2,}", "  ", demo)
    for key, count in (("demo.sum_writes", "65"), ("demo.sum_verified", "161")):
        assert PT(key, count=count) in demo
    assert PT("demo.refuses", of="4") in demo
    for key in ("cli.first_link", "cli.first_command"):
        assert PT(key) in first
