"""Removes the escapes of JSON and of forms from text, so that they hide nobody."""

import re
from urllib.parse import unquote

_BREAKS = re.compile(r"\\+[bfnrt]")
_ESCAPES = re.compile(r"(?:\\+u[0-9a-fA-F]{4})+")
_SLASHES = re.compile(r"\\+")
_VALUE = re.compile(r"[^\s\"<>&=;,@]++")


def decoded(text: str) -> list[str]:
    """Return a text, and without the escapes of JSON and of forms if it has some."""
    found = [text]
    if "\\" in text:
        # However often JSON is in a text of JSON.
        found.append(_SLASHES.sub("", _ESCAPES.sub(_unescaped, _BREAKS.sub(" ", text))))
    if "%" in text:
        found.append(unquote(_VALUE.sub(_spaced, text)))
    return found


def _unescaped(found: re.Match[str]) -> str:
    """Return the signs of some escapes, two for one beyond the first 65,536."""
    digits = found[0].replace("\\", "").replace("u", "")
    return bytes.fromhex(digits).decode("utf-16-be", "replace")


def _spaced(found: re.Match[str]) -> str:
    """Return a value with its spaces: in a form, which escapes an @, a plus is one."""
    return found[0].replace("+", " ") if "%40" in found[0] else found[0]
