"""Folds text for search, sorting and codes: without case and accents, the same on both engines."""

import re
import unicodedata

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
