"""Checks the taxpayer number of a person (CPF) or of a company (CNPJ).

A CPF has nine digits and two check digits by modulo 11, with weights that fall to 2; a rest of 0 or
1 gives 0. The mask 123.456.789-09 is optional, and eleven equal digits are no CPF.
"""

import re
from typing import Any

from gateway.records.values import cnpj
from gateway.records.values.formats import Format, Wrong, string

_FORM = re.compile(r"([0-9]{3})\.?([0-9]{3})\.?([0-9]{3})-?([0-9]{2})", re.ASCII)


def cpf(text: str) -> str | None:
    """Return the eleven digits without mask, or None when the CPF is invalid."""
    match = _FORM.fullmatch(text.strip(" "))
    if match is None:
        return None
    number = "".join(match.groups())
    if len(set(number)) == 1:
        return None
    first = _check_digit(number[:9])
    return number if number[9:] == first + _check_digit(number[:9] + first) else None


def taxpayer() -> Format:
    """Return the format of a CPF or a CNPJ with or without its mask, stored without it."""

    def check(value: Any) -> str:
        sent = string(value, 32)
        number = cpf(sent) or cnpj.normal(sent)
        if number is None:
            raise Wrong(
                "invalid_document",
                "Send a CPF of 11 digits or a CNPJ of 14 characters with valid check digits.",
            )
        return number

    return Format(check, {"type": "string", "maxLength": 32})


def _check_digit(digits: str) -> str:
    weights = range(len(digits) + 1, 1, -1)
    rest = sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True)) % 11
    return "0" if rest < 2 else str(11 - rest)
