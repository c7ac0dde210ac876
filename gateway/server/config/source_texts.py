"""Read files and variables as editors, shells and containers write them; each error has the fix.

No error repeats a part of the text, which may be a secret.
"""

import codecs
import os
from pathlib import Path

MOST_BYTES = 2**20
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}


def of_file(path: Path) -> str:
    """Return the text of a file, without a byte order mark. Raise OSError or ValueError."""
    with path.open("rb") as handle:
        content = handle.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError("is longer than 1 MiB")
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"is not UTF-8 in line {line}; save it as UTF-8") from None
    if "\0" in text:
        raise ValueError("has a zero byte; save it as UTF-8")
    return text


def of_secret_file(name: str) -> str:
    """Return the value in a file, without blanks around it. Raise OSError or ValueError."""
    if not name:
        raise ValueError("names no file")
    text = of_file(Path(name)).strip()
    if not text:
        raise ValueError("names a file that is empty")
    return _unquoted(text)


def of_variable(value: str) -> str:
    """Return the value of a variable, without blanks around it. Raise ValueError."""
    try:
        # Whatever the locale says, the bytes are UTF-8.
        value = os.fsencode(value).decode()
    except UnicodeDecodeError:
        raise ValueError("has bytes that are not UTF-8; set it in UTF-8") from None
    except UnicodeEncodeError:
        pass  # not from an environment
    return _unquoted(value.removeprefix("\ufeff").strip())


def _unquoted(text: str) -> str:
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        raise ValueError("is in quotes, which would be a part of the value; remove them")
    return text
