"""Checks new passwords: their length, and a list of common passwords."""

import unicodedata
from functools import cache
from pathlib import Path

SHORTEST, LONGEST = 8, 128
"""Length of a password in code points."""
LIST = Path(__file__).parent / "vendor" / "common_passwords.txt"


def fault_of(password: str, email: str) -> str | None:
    """Return a sentence that says why `password` is not allowed, or None when it is."""
    if not SHORTEST <= len(password) <= LONGEST:
        return f"A password must have {SHORTEST} to {LONGEST} characters."
    folded = _fold(password)
    if folded in _common() or len(set(folded)) == 1:
        return "This password is too common; use a few random words instead."
    address = _fold(email)
    if folded in (address, address.partition("@")[0]):
        return "This password is your e-mail address; use a few random words instead."
    return None


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


@cache
def _common() -> frozenset[str]:
    return frozenset(LIST.read_text("utf-8").split())
