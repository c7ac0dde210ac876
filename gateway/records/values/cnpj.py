"""Checks the number of a Brazilian company (CNPJ), numeric or alphanumeric, and defines its format.

Source: Receita Federal, Instrução Normativa 2.229/2024: positions 1-12 are digits or capitals,
13-14 are check digits by modulo 11 over ASCII code - 48. The mask 12.ABC.345/01DE-35 is optional.
"""

import re
from operator import mul
from typing import Any

from gateway.records.values.formats import Format, Wrong, string
from gateway.records.values.patterns import CNPJ

_FORM = re.compile(
    r"([0-9A-Z]{2})\.?([0-9A-Z]{3})\.?([0-9A-Z]{3})/?([0-9A-Z]{4})-?([0-9]{2})", re.ASCII
)
_WEIGHTS = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)


def normal(text: str) -> str | None:
    """Return the 14 characters without mask, in capitals, or None when the CNPJ is invalid."""
    if not text.isascii():
        return None
    match = _FORM.fullmatch(text.strip().upper())
    if match is None:
        return None
    number = "".join(match.groups())
    base = number[:12]
    if base == "0" * 12:
        return None
    first = _check_digit(base)
    return number if number[12:] == first + _check_digit(base + first) else None


def _check_digit(text: str) -> str:
    # The character 0 has the code 48.
    codes = [code - 48 for code in text.encode()]
    rest = sum(map(mul, codes, _WEIGHTS[-len(codes) :])) % 11
    return "0" if rest < 2 else str(11 - rest)


def masked(text: str) -> str:
    """Return a CNPJ with its mask; what is none stays as it is."""
    number = normal(text)
    if number is None:
        return text
    return f"{number[:2]}.{number[2:5]}.{number[5:8]}/{number[8:12]}-{number[12:]}"


def cnpj() -> Format:
    """Return the format of a CNPJ with or without its mask, stored unchanged."""

    def check(value: Any) -> str:
        sent = string(value, 32)
        if normal(sent) is None:
            raise Wrong(
                "invalid_cnpj",
                "Send a CNPJ of 14 characters with valid check digits, "
                "for example 11.222.333/0001-81.",
            )
        return sent

    return Format(check, {"type": "string", "maxLength": 32, "pattern": CNPJ, "format": "cnpj"})
