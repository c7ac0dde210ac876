"""Defines the format of a CEP, the Brazilian postal code."""

import re
from typing import Any

from gateway.records.values.formats import Format, Wrong, string

LONGEST = 40
PATTERN = r"^[ .\-]*(?:[0-9][ .\-]*){8}$"
_CEP = re.compile(PATTERN)
# Forms and other programs write other hyphens and blanks, and the word before the number.
_HYPHENS = re.compile("[\u2010-\u2015\u2212]")
_WORD = re.compile(r"\A\s*CEP\b[\s:]*", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\u200b\u2060\ufeff]+")


def cep() -> Format:
    """Return the format of a CEP however it is written, stored as eight digits."""

    def check(value: Any) -> str:
        sent = string(value, LONGEST)
        sent = _BLANKS.sub(" ", _HYPHENS.sub("-", _WORD.sub("", sent)))
        if _CEP.fullmatch(sent) is None:
            raise Wrong("invalid_cep", "Send a CEP of eight digits such as 01310-100.")
        return "".join(filter(str.isdigit, sent))

    return Format(check, {"type": "string", "maxLength": LONGEST, "pattern": PATTERN})
