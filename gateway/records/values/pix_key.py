"""Checks the key of a Pix account by its kind, and writes it as the banks' directory (DICT) has it.

CPF: 11 digits. CNPJ: 14 characters, numeric or alphanumeric. E-mail: at most 77 characters, in
lower case. Phone: +55, the area code and the number. Random: a UUID in lower case.
"""

import re
from collections.abc import Callable
from typing import Any, Literal

from gateway.records.values import cnpj, taxpayer
from gateway.records.values.formats import Format, Wrong, string
from gateway.records.values.patterns import EMAIL

Kind = Literal["cpf", "cnpj", "email", "phone", "random"]
LONGEST = 77
_EMAIL = re.compile(EMAIL)
_BLANKS = re.compile(r"[ ().-]")
_MASK = re.compile(r"[ ./-]")
# A mobile number has nine digits and starts with 9, a landline number has eight.
_PHONE = re.compile(r"\+55[1-9][1-9](9[0-9]{8}|[2-5][0-9]{7})", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_UUID_LIKE = re.compile(r"[0-9a-fA-F-]{32,40}", re.ASCII)

MESSAGES: dict[Kind, str] = {
    "cpf": "A key of 11 digits is a CPF, and its check digits are wrong. A phone starts with +55.",
    "cnpj": "A key of 14 characters is a CNPJ, and its check digits are wrong.",
    "email": f"Send an e-mail address of at most {LONGEST} ASCII characters, such as "
    "pix@shop.example.com.",
    "phone": "Send a Brazilian phone as +55, area code and number, such as +5511988887777.",
    "random": "Send a random key with its hyphens, such as 123e4567-e89b-12d3-a456-426655440000.",
}
UNKNOWN = (
    "Send a CPF, a CNPJ, an e-mail address, a phone such as +5511988887777, or a random key such "
    "as 123e4567-e89b-12d3-a456-426655440000."
)


def kind_of(text: str) -> Kind | None:
    """Return the kind that a key has by its form, right or wrong; None when it has none."""
    if "@" in text:
        return "email"
    if text.startswith("+"):
        return "phone"
    if _UUID_LIKE.fullmatch(text):
        return "random"
    bare = _MASK.sub("", text)
    if not bare.isascii() or not bare.isalnum():
        return None
    if len(bare) == 11 and bare.isdigit():
        return "cpf"
    return "cnpj" if len(bare) == 14 and bare[12:].isdigit() else None


def normal(text: str) -> str | None:
    """Return a key as the directory has it, or None when it is no key."""
    sent = text.strip()
    kind = kind_of(sent)
    return None if kind is None else _NORMAL[kind](sent)


def pix_key() -> Format:
    """Return the format of a Pix key, stored as the directory has it."""

    def check(value: Any) -> str:
        sent = string(value, LONGEST, 1).strip()
        kind = kind_of(sent)
        if kind is None:
            raise Wrong("invalid_pix_key", UNKNOWN)
        key = _NORMAL[kind](sent)
        if key is None:
            raise Wrong("invalid_pix_key", MESSAGES[kind])
        return key

    return Format(check, {"type": "string", "minLength": 1, "maxLength": LONGEST})


def _email(text: str) -> str | None:
    key = text.lower()
    fits = key.isascii() and len(key) <= LONGEST and _EMAIL.fullmatch(key) is not None
    return key if fits else None


def _phone(text: str) -> str | None:
    key = _BLANKS.sub("", text)
    return key if _PHONE.fullmatch(key) else None


def _random(text: str) -> str | None:
    key = text.lower()
    return key if _UUID.fullmatch(key) else None


def _cpf(text: str) -> str | None:
    return taxpayer.cpf(_MASK.sub("", text))


def _cnpj(text: str) -> str | None:
    return cnpj.normal(_MASK.sub("", text))


_NORMAL: dict[Kind, Callable[[str], str | None]] = {
    "cpf": _cpf, "cnpj": _cnpj, "email": _email, "phone": _phone, "random": _random,
}  # fmt: skip
