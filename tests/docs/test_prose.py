"""Texts are spelled right, use plain words, and the docs tell nothing twice."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from gateway import texts
from tests.architecture.tree import ROOT, modules
from tests.docs.pages import generated, names
from tests.docs.plain_words import AVOIDED, NAMES
from tests.support.requirements import need

COMMENT = re.compile(r"^\s*# (?:.*\n\s*# )*.*", re.MULTILINE)
SHORTEST = 9
"""Words of a sentence that counts as told twice."""
BLOCK = re.compile(r"^```.*?^```$|<!--.*?-->|^[|#][^\n]*$", re.MULTILINE | re.DOTALL)


def prose() -> Iterator[tuple[str, str]]:
    """Yield the pages and the English texts of the product, each with its place."""
    for page in (*names(), "CHANGELOG.md", "SECURITY.md"):
        if "/pt/" not in page:
            yield page, (ROOT / page).read_text("utf-8")
    for key, forms in texts.of("en").forms.items():
        yield f"text {key}", "\n".join(forms)


def told_in_code() -> Iterator[tuple[str, str]]:
    """Yield the docstrings and the comments of each module."""
    for path in modules():
        source = (ROOT / path).read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            text = node.value if isinstance(node, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                yield path.as_posix(), text.value
        for comment in COMMENT.findall(source):
            yield path.as_posix(), re.sub(r"\n\s*#", " ", comment)


ANY_AVOIDED = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, AVOIDED))})(?!\w)", re.IGNORECASE)


def odd(pieces: Iterable[tuple[str, str]]) -> list[str]:
    """Return the places that have a phrase to avoid, with the better one."""
    return [
        f"{place}: “{phrase}”: {AVOIDED[phrase.lower()]}"
        for place, text in pieces
        for phrase in ANY_AVOIDED.findall(" ".join(text.split()))
    ]


def sentences(page: str) -> Iterator[str]:
    """Yield the long sentences of a page, without blocks, tables and marks."""
    text = BLOCK.sub("\n\n", (ROOT / page).read_text("utf-8"))
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    for paragraph in re.split(r"\n\s*\n|^\s*(?:-|\d+\.) ", text, flags=re.MULTILINE):
        for sentence in re.split(r"(?<=[.!?]) ", " ".join(paragraph.split())):
            words = re.findall(r"\w+", sentence.lower())
            if len(words) >= SHORTEST:
                yield " ".join(words)


def twice(told: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the sentences that stand in more than one place."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for place, sentence in told:
        places[sentence].append(place)
    return {sentence: found for sentence, found in places.items() if len(found) > 1}


def test_no_text_has_a_phrase_to_avoid() -> None:
    assert odd(prose()) == []
    assert odd(told_in_code()) == []
    assert len(list(told_in_code())) >= 4_000
    assert odd([("here", "The process stands\nstill.")])
    assert not odd([("here", "The process stands stillness.")])


def test_no_sentence_of_the_docs_is_told_twice() -> None:
    pages = [page for page in names() if not generated(page)]
    told = [(page, one) for page in pages for one in sentences(page)]
    assert len(told) >= 500
    assert twice(told) == {}
    assert twice([("one", "a b"), ("two", "a b"), ("two", "c")]) == {"a b": ["one", "two"]}


def misspelled(*paths: Path) -> str:
    command = [sys.executable, "-m", "codespell_lib", "--ignore-words-list", ",".join(NAMES)]
    skip = ["--skip", "*/vendor/*,*/headings.toml,*/pt_BR/*,*/pt/*,*.pyc,*.png,*.svg,*.lock"]
    return subprocess.run([*command, *skip, *paths], capture_output=True, text=True).stdout


def test_docs_texts_and_docstrings_are_spelled_right(tmp_path: Path) -> None:
    need("codespell_lib")
    wrong = tmp_path / "page.md"
    wrong.write_text("A delivery is recieved.\n")
    assert "recieved ==> received" in misspelled(wrong)
    places = (
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "config.toml",
        "docs",
        "gateway",
        "outbox",
    )
    assert misspelled(*(ROOT / place for place in places)) == ""
