"""Folds text for search, sorting and codes, and removes from it what nobody sees.

Folded text has no case and no accents, the same on both engines. Nobody sees outer blanks,
invisible characters and empty fields.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from anyascii import anyascii

# Search ignores the bytes past this limit, which keeps the index rows small.
BYTES = 1000
# Separates two fields in one folded column, so that no search matches across them.
BETWEEN = "\x1f"
# The marks of this block, without the one that casefold makes a letter.
_ACCENTS = re.compile(r"[\u0300-\u0344\u0346-\u036f]+")
_FOREIGN = re.compile(r"[^\x00-\x7f]")
# Latin letters that Unicode does not take apart, such as ł, ø and œ, and quotes and hyphens. Other
# scripts stay: a search for one Chinese word must not find all that sound alike.
_LATIN = re.compile(
    r"[\u00d8-\u00f6\u00f8-\u02ff\u1d00-\u1dbf\u1e00-\u1eff\u2010-\u201f\u2032-\u203a\u2c60-\u2c7f"
    r"\ua722-\ua7ff\uab30-\uab6f]+"
)
_SHOWN = ("L", "N")


def fold(text: str) -> str:
    """Return text for search and sorting: without case and accents, Latin letters in ASCII."""
    text = text[:BYTES]
    if text.isascii():
        return text.lower()
    text = without_case(text)
    if text.isascii():
        return text
    return cut(_LATIN.sub(lambda found: anyascii(found[0]).lower(), text))


def transliterate(text: str) -> str:
    """Return text in small ASCII letters, digits and blanks; `чай` is `chay`."""
    text = unicodedata.normalize("NFKC", text[:BYTES].casefold())
    if text.isascii():
        return text
    parts = []
    for character in text:
        if character.isascii():
            parts.append(character)
        elif (kind := unicodedata.category(character)[0]) in _SHOWN:
            parts.append(anyascii(character).lower())
        elif kind != "M":
            parts.append(" ")
    return "".join(parts)


def without_case(text: str) -> str:
    """Return the form in which codes and names of categories are equal: without case and accents.

    It is NFKD, casefolded, NFKD again, without marks; cut to BYTES characters, then bytes.
    """
    # The time to sort a long run of marks grows with the square of its length.
    text = text[:BYTES]
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", text)
    latin = _ACCENTS.sub("", spread)
    if latin.isascii():
        return latin.lower()[:BYTES]
    spread = unicodedata.normalize("NFKD", spread.casefold())
    for character in set(_FOREIGN.findall(spread)):
        if unicodedata.category(character)[0] == "M":
            spread = spread.replace(character, "")
    return cut(spread)


def fold_all(texts: list[str]) -> str:
    """Return several fields as one folded text."""
    return cut(BETWEEN.join(map(fold, texts)))


def cut(text: str) -> str:
    """Return the longest prefix of `text` that fits into BYTES bytes."""
    if len(text) <= BYTES and text.isascii():
        return text
    return text.encode()[:BYTES].decode(errors="ignore")


# Soft hyphens, zero-width spaces and joiners, marks of direction, byte order marks, and the like.
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]")
# Beside letters of scripts and pictures that need them, the two joiners change what is seen.
_LETTER = "[^\x00-\u02ff\u200c\u200d\u2800\\s]"
_JOINER = re.compile(f"(?<!{_LETTER})[\u200c\u200d]|[\u200c\u200d](?!{_LETTER})")
_BLANKS = "\u2800" + "".join(filter(str.isspace, map(chr, range(0x3001))))
INVISIBLE = f"{_UNSEEN}\u200c\u200d"
"""Invisible characters, as the inside of a class of a regular expression."""
UNSEEN = f"{INVISIBLE}{_BLANKS}"
"""What nobody sees: invisible characters and blanks, as the inside of such a class."""
_HARD_SPACE = re.compile("[\u00a0\u2007\u202f]")


def clean(text: str) -> str:
    """Return a text without outer blanks and invisible characters, hard spaces as plain ones."""
    if text.isascii():
        return text.strip()
    text = _outer(_INVISIBLE.sub("", _HARD_SPACE.sub(" ", text)))
    return _outer(_JOINER.sub("", text))


def trimmed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a form, and of the forms in it, without outer blanks."""
    return {name: _trim(value) for name, value in values.items()}


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trimmed values without the empty ones: a form sends an empty field as ""."""
    found = {
        name: filled(value) if isinstance(value, dict) else value
        for name, value in trimmed(values).items()
    }
    return {name: value for name, value in found.items() if value not in ("", None, {})}


def _trim(value: Any) -> Any:
    if isinstance(value, dict):
        return trimmed(value)
    return value.strip() if isinstance(value, str) else value


def _outer(text: str) -> str:
    """Return a text without blanks around it, the blank of Braille among them."""
    return text.strip(_BLANKS)
