"""Removes what nobody sees: outer blanks and invisible characters of a text, empty fields."""

import re
from collections.abc import Mapping
from typing import Any

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
UNSEEN = f"{_UNSEEN}\u200c\u200d{_BLANKS}"
"""What nobody sees, as the inside of a class of a regular expression."""
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
