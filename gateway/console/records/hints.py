"""Leaves out the hints of inputs that say what the label says: `Name of the store.` at `Name`."""

import re
from functools import cache

from gateway.records.values.folding import fold
from gateway.texts import Texts

WORD = re.compile(r"[^\W_]+")
SMALL = frozenset({
    "a", "an", "the", "of", "its", "it", "is", "for", "in", "and", "this", "that",
    "o", "os", "as", "um", "uma", "do", "da", "dos", "das", "de", "em", "no", "na", "e", "se",
    "seu", "sua", "este", "esta", "para",
})  # fmt: skip
"""Words that say nothing by themselves, folded."""


def useful(texts: Texts, label: str, hint: str) -> str:
    """Return the hint, or an empty text when it has no word but the label's and the record's."""
    return hint if _words(hint) - SMALL - _nouns(texts) - _words(label) else ""


@cache
def _nouns(texts: Texts) -> frozenset[str]:
    """Return the words for records in a language."""
    keys = [key for key in texts if key.startswith("noun.")]
    return frozenset().union(*(_words(texts(key)) for key in keys))


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(fold(text)))
