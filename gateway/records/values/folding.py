"""Folds text for search and sorting: without case and accents, the same on both engines."""

import re
import unicodedata

# Search ignores the bytes past this limit, which keeps the index rows small.
BYTES = 1000
# Separates two fields in one folded column, so that no search matches across them.
BETWEEN = "\x1f"
# The marks of this block, without the one that casefold makes a letter.
_ACCENTS = re.compile(r"[\u0300-\u0344\u0346-\u036f]+")
_FOREIGN = re.compile(r"[^\x00-\x7f]")


def fold(text: str) -> str:
    """Return NFKD, casefolded, NFKD again, without marks; cut to BYTES characters, then bytes."""
    # The time to sort a long run of marks grows with the square of its length.
    text = text[:BYTES]
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", text)
    latin = _ACCENTS.sub("", spread)
    if latin.isascii():
        return cut(latin.lower())
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
