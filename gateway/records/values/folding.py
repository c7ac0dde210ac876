"""Text as search and sorting compare it: without case and accents, the same on both engines."""

import re
import unicodedata

# Past this many bytes a text is not searched; it keeps the index rows small.
BYTES = 1000
# Stands between two fields in one folded column, so that no search matches across them.
BETWEEN = "\x1f"
_FOREIGN = re.compile(r"[^\x00-\x7f]")


def fold(text: str) -> str:
    """NFKD, casefold, NFKD again, marks dropped, cut at BYTES characters before and bytes after."""
    # Sorting a long run of marks takes the square of its length.
    text = text[:BYTES]
    if text.isascii():
        return text.lower()
    spread = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    for character in set(_FOREIGN.findall(spread)):
        if unicodedata.category(character)[0] == "M":
            spread = spread.replace(character, "")
    return cut(spread)


def fold_all(texts: list[str]) -> str:
    """Several fields in one folded text."""
    return cut(BETWEEN.join(map(fold, texts)))


def cut(text: str) -> str:
    """The longest beginning of `text` that fits into BYTES bytes."""
    return text.encode()[:BYTES].decode(errors="ignore")
