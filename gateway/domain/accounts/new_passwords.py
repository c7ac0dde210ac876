"""What a new password must be: long enough, and none that everybody tries first."""

import unicodedata
from functools import cache
from pathlib import Path

SHORTEST, LONGEST = 8, 128
"""Length of a password in code points; nothing is ever cut off."""
LIST = Path(__file__).parent / "vendor" / "common_passwords.txt"


def fault_of(password: str, email: str) -> str | None:
    """Why nobody may have `password`, as a sentence that says what to do; None for a good one."""
    if not SHORTEST <= len(password) <= LONGEST:
        return f"A password has {SHORTEST} to {LONGEST} characters."
    folded = _fold(password)
    if folded in _common() or len(set(folded)) == 1:
        return "This password is among the first that are tried; take a few random words instead."
    address = _fold(email)
    if folded in (address, address.partition("@")[0]):
        return "This password is the e-mail address; take a few random words instead."
    return None


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


@cache
def _common() -> frozenset[str]:
    return frozenset(LIST.read_text("utf-8").split())
