"""Writes CEP, CPF, CNPJ and phones in their usual form; they are stored without it, or as typed."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import phonenumbers

from gateway.records.values import cnpj, taxpayer

BRAZIL = 55
CEP = 8


def _cep(text: str) -> str:
    return f"{text[:5]}-{text[5:]}" if text.isdigit() and len(text) == CEP else text


def _document(text: str) -> str:
    """Return a CPF as 123.456.789-09, a CNPJ as 12.ABC.345/01DE-35."""
    number = taxpayer.cpf(text)
    if number is not None:
        return f"{number[:3]}.{number[3:6]}.{number[6:9]}-{number[9:]}"
    return cnpj.masked(text)


@lru_cache(maxsize=10_000)
def _phone(text: str) -> str:
    """Return a Brazilian phone as (11) 98888-7777, one from elsewhere as +351 912 345 678."""
    try:
        number = phonenumbers.parse(text, "BR")
    except phonenumbers.NumberParseException:
        return text
    if not phonenumbers.is_valid_number(number):
        return text
    kinds = phonenumbers.PhoneNumberFormat
    kind = kinds.NATIONAL if number.country_code == BRAZIL else kinds.INTERNATIONAL
    return str(phonenumbers.format_number(number, kind))


MASKS: Mapping[str, Callable[[str], str]] = {
    "cep": _cep, "cepFrom": _cep, "cepTo": _cep, "document": _document, "cnpj": _document,
    "phone": _phone,
}  # fmt: skip
"""What writes the values of fields of these names."""


def masked(name: str, value: Any) -> Any:
    """Return a value of a field in its usual form; what has none stays as it is."""
    mask = MASKS.get(name)
    return mask(value) if mask is not None and isinstance(value, str) else value
