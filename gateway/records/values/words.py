"""Splits text into the words of a search index, and searches into the terms that must match.

Both engines index these terms as they are: their own analysis would differ from one another, and
Portuguese stemmers need the accents that buyers leave out. A word has two terms, itself, for
prefixes, and its singular, so that `promoções` finds `promocao`. A term begins with its store,
so that the work of a search does not depend on other stores.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.records.values.folding import fold

_WORD = re.compile(r"[^\W_]+")
_SMALL = frozenset({
    "a", "o", "as", "os", "e", "um", "uma", "de", "da", "do", "das", "dos", "em", "na", "no", "nas",
    "nos", "ao", "aos", "com", "para", "por",
})  # fmt: skip
"""Words that a search does not insist on."""
_ENDS = (
    ("oes", "ao"), ("aes", "ao"), ("ais", "al"), ("eis", "el"), ("ois", "ol"), ("uis", "ul"),
    ("ns", "m"), ("is", "il"), ("s", ""),
)  # fmt: skip
"""How plurals end, folded, and what stands there in the singular."""
_SHORTEST = 4
"""Letters of the shortest word that has a plural: `mês` and `gás` have none."""
ITSELF, SINGULAR, CATEGORY = "w", "s", "c"
"""What follows the store in a term."""
MOST = 10
"""Words of a search that count; each costs a look into the index."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a search; `prefix`: any term that begins with it matches."""

    text: str
    prefix: bool = False


Terms = Sequence[Sequence[Term]]
"""One term of each of these groups must match."""


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded."""
    return _WORD.findall(fold(text))


def singular(word: str) -> str:
    """Return the form that the plural and the singular of a folded word share.

    It is no word of the language: `flores` and `flor`, but also `torres` and `torre`, end alike
    without their `e`.
    """
    if len(word) < _SHORTEST or not word.isalpha():
        return word
    for end, instead in _ENDS:
        if word.endswith(end) and not word.endswith("ss"):
            word = word[: -len(end)] + instead
            break
    return word[:-1] if word.endswith("e") and len(word) >= _SHORTEST else word


def index_terms(store_id: str, texts: Iterable[str], categories: Iterable[str]) -> str:
    """Return the terms of a record, each between two spaces. `categories` are folded names."""
    words = dict.fromkeys(word for text in texts for word in words_of(text))
    terms = dict.fromkeys(
        [
            *(f"{store_id}{ITSELF}{word}" for word in words),
            *(f"{store_id}{SINGULAR}{singular(word)}" for word in words),
            *(category_term(store_id, name) for name in categories),
        ]
    )
    return f" {' '.join(terms)} "


def search_terms(store_id: str, text: str) -> Terms:
    """Return what a search for a text asks of the index; nothing for a text without words.

    Its last word may be unfinished.
    """
    words = words_of(text)[:MOST]
    words = [word for word in words if word not in _SMALL] or words
    return [
        [
            Term(f"{store_id}{SINGULAR}{singular(word)}"),
            *([Term(f"{store_id}{ITSELF}{word}", prefix=True)] if number == len(words) else []),
        ]
        for number, word in enumerate(words, start=1)
    ]


def category_term(store_id: str, name: str) -> str:
    """Return the term of the records with a category's folded name."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{store_id}{CATEGORY}{digest}"
