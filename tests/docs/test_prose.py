"""Texts are spelled right, use plain words, and the docs tell nothing twice."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gateway import texts
from tests.architecture.tree import ROOT, modules
from tests.docs.pages import generated, names
from tests.support.requirements import need

AVOIDED: Mapping[str, str] = {
    "fails some on purpose": "deliberately fails some requests",
    "by the thousand": "thousands",
    "for single addresses only": "list individual addresses",
    "nothing waits": "queue empty",
    "day beside week": "compare 24 h and 7 days",
    "what became of its": "the status of its",
    "wants no more events": "asked to stop receiving events",
    "wants fewer requests": "rate-limited, unavailable or overloaded",
    "the verdict is that of": "a real delivery would get this result",
    "when would retries follow": "retry schedule",
    "a command of curl": "a curl command",
    "but these are others": "but this body was re-serialized",
    "replays pass always": "filters skip tests and replays",
    "one attempt alone": "`never` disables retries",
    "that it never got": "it never received",
    "new events are sent beside it": "new events continue in parallel",
    "deliveries it will make": "will create … deliveries",
    "the system that watches": "your monitoring system",
    "lets all go on at once": "resumes all deliveries",
    "a row without texts": "an empty row",
    "makes an order paid": "an order is paid when its invoice is",
    "place in the log": "log position",
    "again and again": "repeatedly",
    "now and then": "periodically",
    "see details)": "… more error in details",
    "never cuts a page": "pages are always complete",
    "the write fixes the bytes": "bytes never change after the write",
    "hears what becomes": "receives reports about",
    "behind the newest event": "after the newest event",
    "edit holds from the moment": "edits apply immediately",
    "is told no more": "notices expire",
    "vouches for": "covers, or proves",
    "can make its digests right": "can recompute the checksums",
    "are yours to change": "rotate these yourself",
    "both kinds may be several": "run several of each",
    "a poor machine": "slow hardware",
    "made at home": "your own version",
    "stands still": "hangs, or waits",
    "missed here": "missed the target",
    "on its way to": "queued for",
    "the hopeless ones": "the impossible ones",
    "nobody has told their part": "their share was not measured",
    "falls silent": "stops sending",
    "comes to life": "starts",
    "goes to sleep": "waits",
    "lie in wait": "wait",
}
"""Parts of sentences that were odd: a verb hidden in a noun, a thing that acts, a metaphor."""
NAMES = (
    "nome", "falso", "ois", "flor", "cliente", "cros", "te",
)  # fmt: skip
"""Words of Portuguese and of programs."""


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
    in_code = list(told_in_code())
    assert odd(in_code) == []
    assert len(in_code) >= 4_000
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
