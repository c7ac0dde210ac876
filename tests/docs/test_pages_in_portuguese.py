"""The pages of docs/pt have the structure and the code blocks of their English pages."""

import re

import pytest

from tests.architecture.tree import ROOT
from tests.docs.pages import blocks, text_of

PAGES = sorted(path.name for path in (ROOT / "docs" / "pt").glob("*.md"))


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_the_parts_and_blocks_of_the_english_one(name: str) -> None:
    [path] = [page for page in (ROOT / "docs").rglob(name) if page.parent.name != "pt"]
    english, portuguese = path.relative_to(ROOT).as_posix(), f"docs/pt/{name}"
    told = [
        [(block.language, block.note, block.text) for block in blocks(page)]
        for page in (english, portuguese)
    ]
    assert told[1] == told[0]
    for mark in ("# ", "## ", "- ", "| "):
        starts = [
            len(re.findall(f"^{re.escape(mark)}", text_of(page), re.M))
            for page in (english, portuguese)
        ]
        assert starts[0] == starts[1], mark
    assert f"](../pt/{name})" in text_of(english)
    assert f"](../{path.parent.name}/{name})" in text_of(portuguese)
