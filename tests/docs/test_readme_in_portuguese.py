"""README.pt-BR.md says what README.md says: the same commands, links and screens."""

from __future__ import annotations

import re
from pathlib import Path

from gateway import texts
from tests.architecture.tree import ROOT
from tests.docs.pages import blocks, text_of

ENGLISH, PORTUGUESE = "README.md", "README.pt-BR.md"
TWINS = {path.name for path in (ROOT / "docs" / "pt").glob("*.md")}
COMMENT = re.compile(r"\s*#.*$", re.M)
EN, PT = texts.of("en"), texts.of("pt-BR")


def commands(page: str) -> list[str]:
    return [COMMENT.sub("", block.text) for block in blocks(page) if block.language == "sh"]


def links(page: str) -> list[str]:
    return sorted(re.findall(r'(?:\]\(|srcset="|src=")([^)"]+)', text_of(page)))


def screens(page: str) -> list[str]:
    return [block.text for block in blocks(page) if block.language == "text"]


def test_it_has_the_same_commands_and_links() -> None:
    assert commands(PORTUGUESE) == commands(ENGLISH)
    # Each links to the other one, and the one in Portuguese to all pages in Portuguese.
    here = {f"docs/pt/{name}" for name in TWINS}
    assert here <= set(links(PORTUGUESE))
    told = (set(links(PORTUGUESE)) - here) | {
        one for one in links(ENGLISH) if Path(one).name in TWINS
    }
    assert told - {ENGLISH} == set(links(ENGLISH)) - {PORTUGUESE}
    assert ENGLISH in links(PORTUGUESE)
    assert PORTUGUESE in links(ENGLISH)
    for link in links(PORTUGUESE):
        assert (ROOT / link.partition("#")[0]).exists(), link


def test_it_has_the_same_parts_and_figures() -> None:
    for mark in ("## ", "- ", "| ", "<!-- "):
        starts = [
            len(re.findall(f"^{re.escape(mark)}", text_of(page), re.M))
            for page in (ENGLISH, PORTUGUESE)
        ]
        assert starts[0] == starts[1], mark
    figures = [
        sorted(re.findall(r"(?<![\w.])\d[\d.:]*(?!\w)", text_of(page)))
        for page in (ENGLISH, PORTUGUESE)
    ]
    assert set(figures[1]) == set(figures[0])


def test_its_screens_are_those_of_the_program() -> None:
    demo, first, _, _ = screens(PORTUGUESE)
    for key in ("demo.heading", "demo.address_shop", "demo.sign_in", "demo.password"):
        assert PT(key) in demo
    header = [PT(key) for key in EN if key.startswith("demo.column.")]
    assert "  ".join(header) in re.sub(r" {2,}", "  ", demo)
    for key, count in (("demo.sum_writes", "65"), ("demo.sum_verified", "161")):
        assert PT(key, count=count) in demo
    assert PT("demo.refuses", of="4") in demo
    for key in ("cli.first_link", "cli.first_command"):
        assert PT(key) in first
