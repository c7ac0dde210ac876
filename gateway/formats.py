"""The formats of plain fields (lists and objects: gateway.nested): checks, and their JSON forms.

A pattern here is the same text in the check and in the schema, in the syntax that ECMA-262 and
Python share.
"""

import re
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any

import phonenumbers

from gateway import cnpj as cnpj_number
from gateway import dates, zones
from gateway.patterns import BLANK, CNPJ, EMAIL, PHONE, SLUG, URL, VISIBLE, WEBSITE, ZONE
from gateway.resource import Format, Wrong
from gateway.schemas import ID, INSTANT
from outbox.ids import is_id

LONG = 65_535
_VISIBLE = re.compile(rf"[^{BLANK}]")
_EMAIL = re.compile(EMAIL)
_WEBSITE = re.compile(WEBSITE)
_URL = re.compile(URL)
_SLUG = re.compile(SLUG)
_PHONE = re.compile(PHONE)
_CENTAVO = Decimal("0.01")
_MOST = Decimal("999999999999.99")
MOST_CENTAVOS = int(_MOST * 100)
_THOUSANDTH = Decimal("0.001")
_MUCH = Decimal("999999.999")
MOST_THOUSANDTHS = int(_MUCH * 1000)
_INSTANT = {"type": "string", "anyOf": [{"format": "date-time"}, {"format": "date"}]}
_ID = {"type": "string", "pattern": "^[0-9a-fA-F]{24}$"}
# PostgreSQL's text cannot hold it.
_NO_NUL = {"pattern": r"^[^\u0000]*$"}


def text(most: int, least: int = 0) -> Format:
    """Free text, shown as it was sent."""

    def check(value: Any) -> str:
        return _string(value, most, least)

    return Format(check, {"type": "string", "minLength": least, "maxLength": most, **_NO_NUL})


def title(most: int = 200) -> Format:
    """Text of which at least one character can be seen."""

    def check(value: Any) -> str:
        sent = _string(value, most, 1)
        if _VISIBLE.search(sent) is None:
            raise Wrong("blank", "Send at least one visible character.")
        return sent

    schema = {"type": "string", "minLength": 1, "maxLength": most, "pattern": VISIBLE}
    return Format(check, schema)


def one_of(*allowed: str) -> Format:
    """One of a closed list of words."""
    words = ", ".join(allowed)

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise Wrong("not_allowed", f"Send one of: {words}.")
        return value

    return Format(check, {"type": "string", "enum": list(allowed)})


def email() -> Format:
    """A mailbox address by its syntax alone: dot-atom @ host name, non-ASCII letters allowed."""

    def check(value: Any) -> str:
        sent = _string(value, 254)
        if _EMAIL.fullmatch(sent) is None or sent.index("@") > 64:
            raise Wrong("invalid_email", "Send an e-mail address such as maria@example.com.")
        return sent

    schema = {"type": "string", "maxLength": 254, "pattern": EMAIL}
    return Format(check, schema)


def phone() -> Format:
    """A phone number as people write it; `e164` gives its international form."""

    def check(value: Any) -> str:
        sent = _string(value, 40)
        if _PHONE.fullmatch(sent) is None:
            raise Wrong("invalid_phone", "Send 3 to 40 of the characters 0-9+()-.x and space.")
        return sent

    return Format(check, {"type": "string", "minLength": 3, "maxLength": 40, "pattern": PHONE})


@lru_cache(maxsize=1024)
def e164(sent: str) -> str | None:
    """The E.164 form of a phone number, read as Brazilian unless it says otherwise, or None."""
    try:
        number = phonenumbers.parse(sent, "BR")
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_possible_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def website() -> Format:
    """An http(s) URL or a bare host name."""

    def check(value: Any) -> str:
        sent = _string(value, 2048)
        if _WEBSITE.fullmatch(sent) is None:
            raise Wrong(
                "invalid_website", "Send an http or https URL or a host name such as example.com."
            )
        return sent

    return Format(check, {"type": "string", "maxLength": 2048, "pattern": WEBSITE})


def url() -> Format:
    """An http(s) URL."""

    def check(value: Any) -> str:
        sent = _string(value, 2048)
        if _URL.fullmatch(sent) is None:
            raise Wrong("invalid_url", "Send an http or https URL.")
        return sent

    return Format(check, {"type": "string", "maxLength": 2048, "pattern": URL})


def slug() -> Format:
    """The part of an address that names a record: lower-case words with hyphens between."""

    def check(value: Any) -> str:
        sent = _string(value, 200)
        if _SLUG.fullmatch(sent) is None:
            raise Wrong("invalid_slug", "Send lower-case letters and digits, such as coffee-1-kg.")
        return sent

    return Format(check, {"type": "string", "maxLength": 200, "pattern": SLUG})


def cnpj() -> Format:
    """A CNPJ with or without its mask, shown as it was sent; `gateway.cnpj.normal` beside it."""

    def check(value: Any) -> str:
        sent = _string(value, 32)
        if cnpj_number.normal(sent) is None:
            raise Wrong(
                "invalid_cnpj",
                "Send a CNPJ of 14 characters whose check digits are right, "
                "for example 11.222.333/0001-81.",
            )
        return sent

    return Format(check, {"type": "string", "maxLength": 32, "pattern": CNPJ, "format": "cnpj"})


def boolean() -> Format:
    def check(value: Any) -> bool:
        if not isinstance(value, bool):
            raise Wrong("wrong_type", "Send true or false.")
        return value

    # SQLite gives 0 and 1 back.
    return Format(check, {"type": "boolean"}, bool)


def integer(least: int, most: int) -> Format:
    """A whole number; in JSON 5.0 is one, "5" and true are not."""

    def check(value: Any) -> int:
        if not least <= value <= most:
            raise Wrong("out_of_range", f"Send a whole number from {least} to {most}.")
        if value != int(value):
            raise Wrong("wrong_type", "Send a whole number.")
        return int(value)

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Format(check, schema, read=_number)


def money() -> Format:
    """An amount in BRL as whole centavos; in JSON a number with at most two decimals."""

    def check(centavos: Any) -> int:
        if not 0 <= centavos <= MOST_CENTAVOS:
            raise Wrong("out_of_range", f"Send an amount from 0 to {MOST_CENTAVOS} centavos.")
        return int(centavos)

    def read(value: Any) -> int:
        number = _number(value)
        if not 0 <= number <= _MOST:
            raise Wrong("out_of_range", f"Send an amount from 0 to {_MOST}.")
        amount = Decimal(number).quantize(_CENTAVO)
        # Comparing is exact, however many digits were sent; arithmetic would round.
        if amount != number:
            raise Wrong("too_precise", "Send an amount with at most 2 decimals.")
        return int(amount * 100)

    schema = {"type": "number", "minimum": 0, "maximum": float(_MOST), "multipleOf": 0.01}
    return Format(check, schema, show_money, read=read)


def quantity() -> Format:
    """How much of something, above 0, in whole thousandths; in JSON with at most three decimals."""

    def check(thousandths: Any) -> int:
        if not 0 < thousandths <= MOST_THOUSANDTHS:
            raise Wrong(
                "out_of_range", f"Send a quantity from 1 to {MOST_THOUSANDTHS} thousandths."
            )
        return int(thousandths)

    def read(value: Any) -> int:
        number = _number(value)
        if not 0 < number <= _MUCH:
            raise Wrong("out_of_range", f"Send a quantity above 0 and up to {_MUCH}.")
        amount = Decimal(number).quantize(_THOUSANDTH)
        if amount != number:
            raise Wrong("too_precise", "Send a quantity with at most 3 decimals.")
        return int(amount * 1000)

    schema = {
        "type": "number", "exclusiveMinimum": 0, "maximum": float(_MUCH), "multipleOf": 0.001,
    }  # fmt: skip
    return Format(check, schema, show_quantity, read=read)


def show_quantity(thousandths: int) -> int | float:
    """1500 → 1.5, 2000 → 2."""
    whole, rest = divmod(thousandths, 1000)
    return thousandths / 1000 if rest else whole


def show_money(centavos: int) -> int | float:
    """1050 → 10.5, 1000 → 10."""
    whole, rest = divmod(centavos, 100)
    # Both are exact to the centavo: the amounts stay below 2**53 centavos.
    return centavos / 100 if rest else whole


def instant() -> Format:
    """A point in time in microseconds UTC, a bare date as 00:00Z; in JSON ISO 8601 text."""

    def check(value: Any) -> int:
        return _micros(value.day if isinstance(value, dates.Day) else value)

    return Format(check, _INSTANT, dates.show, INSTANT, _read_instant)


def moment() -> Format:
    """An instant; a bare date stays a dates.Day until the unit settles it by the owner's zone."""

    def check(value: Any) -> int | dates.Day:
        if isinstance(value, dates.Day):
            return dates.Day(_micros(value.day))
        return _micros(value)

    return Format(check, _INSTANT, dates.show, INSTANT, _read_instant)


def _micros(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong("wrong_type", "Send a time in microseconds.")
    if not dates.FIRST <= value <= dates.LAST:
        raise _invalid_date()
    return value


def _read_instant(value: Any) -> int | dates.Day:
    text = _string(value, 40)
    micros = dates.parse(text)
    if micros is None:
        raise _invalid_date()
    if dates.is_day(text):
        return dates.Day(micros)
    # No finer than it is shown, so that what was read may be sent back and changes nothing.
    return micros // 1000 * 1000


def _invalid_date() -> Wrong:
    return Wrong(
        "invalid_date",
        "Send an ISO 8601 date or date-time that exists, such as 2026-11-21 or "
        "2026-11-21T14:30:00Z.",
    )


def zone() -> Format:
    """The name of a time zone."""

    def check(value: Any) -> str:
        sent = _string(value, 64)
        if sent not in zones.names():
            raise Wrong("invalid_timezone", "Send an IANA time zone such as America/Sao_Paulo.")
        return sent

    return Format(check, {"type": "string", "maxLength": 64, "pattern": ZONE})


def id_of(noun: str) -> Format:
    """The id of another record; whether it is there is asked in the transaction."""

    def check(value: Any) -> str:
        sent = _string(value)
        if not is_id(sent):
            raise missing(noun)
        return sent.lower()

    return Format(check, _ID, None, ID)


def missing(noun: str) -> Wrong:
    """What a reference gets that is malformed, unknown or another user's: no telling which."""
    return Wrong("invalid_reference", f"There is no {noun} of yours with this id.")


def _string(value: Any, most: int = 40, least: int = 0) -> str:
    if not isinstance(value, str):
        raise Wrong("wrong_type", "Send a string.")
    if len(value) > most:
        raise Wrong("too_long", f"Send at most {most} characters.")
    if len(value) < least:
        raise Wrong("too_short", f"Send at least {least} character{'s' * (least > 1)}.")
    # The REST door's parser has refused these already; other doors have parsers of their own.
    if "\0" in value or not (value.isascii() or _is_utf8(value)):
        raise Wrong("invalid_characters", "Send text without U+0000 and lone surrogates.")
    return value


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _number(value: Any) -> int | Decimal:
    if isinstance(value, float) and isfinite(value):
        return Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Wrong("wrong_type", "Send a number.")
    return value
