"""Defines the formats of counts, amounts of money and quantities, without float arithmetic."""

from decimal import Decimal
from math import isfinite
from typing import Any

from gateway.records.values.formats import Format, Wrong

MOST_DIGITS = 18
_CENTAVO = Decimal("0.01")
_MOST = Decimal("999999999999.99")
MOST_CENTAVOS = int(_MOST * 100)
WHOLE = 10_000
"""100 percent, in hundredths of a percent."""
_THOUSANDTH = Decimal("0.001")
_MUCH = Decimal("999999.999")
MOST_THOUSANDTHS = int(_MUCH * 1000)


def typed(text: str, least: int, most: int) -> int | None:
    """Return the whole number of a text of digits; None unless it is from `least` to `most`."""
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        return None
    return number if least <= (number := int(text)) <= most else None


def integer(least: int, most: int) -> Format:
    """Return the format of a whole number; in JSON 5.0 is one, "5" and true are not."""

    def check(value: Any) -> int:
        number = _number(value)
        if not least <= number <= most:
            text = "Send a whole number from {least} to {most}."
            raise Wrong("out_of_range", text, least=least, most=most)
        if number != int(number):
            raise Wrong("wrong_type", "Send a whole number.")
        return int(number)

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Format(check, schema)


def money(least: int = 0) -> Format:
    """Return the format of an amount in BRL: whole centavos, in JSON at most two decimals."""
    lowest = Decimal(least) / 100

    def check(value: Any) -> int:
        centavos = _whole(value)
        if not least <= centavos <= MOST_CENTAVOS:
            text = "Send an amount from {least} to {most} centavos."
            raise Wrong("out_of_range", text, least=least, most=MOST_CENTAVOS)
        return centavos

    def read(value: Any) -> int:
        number = _number(value)
        if not lowest <= number <= _MOST:
            text = "Send an amount from {least} to {most}."
            raise Wrong("out_of_range", text, least=lowest, most=_MOST)
        return _hundredths(number, "an amount")

    schema = {
        "type": "number", "minimum": show_money(least), "maximum": float(_MOST), "multipleOf": 0.01,
    }  # fmt: skip
    return Format(check, schema, show_money, read=read)


def percentage() -> Format:
    """Return the format of a percentage: hundredths of a percent, in JSON up to two decimals."""

    def check(value: Any) -> int:
        hundredths = _whole(value)
        if not 0 < hundredths <= WHOLE:
            raise _no_percentage()
        return hundredths

    def read(value: Any) -> int:
        number = _number(value)
        if not 0 < number <= 100:
            raise _no_percentage()
        return _hundredths(number, "a percentage")

    schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 100, "multipleOf": 0.01}
    return Format(check, schema, show_money, read=read)


def quantity() -> Format:
    """Return the format of a quantity above 0: thousandths, in JSON at most three decimals."""

    def check(value: Any) -> int:
        thousandths = _whole(value)
        if not 0 < thousandths <= MOST_THOUSANDTHS:
            text = "Send a quantity from {least} to {most} thousandths."
            raise Wrong("out_of_range", text, least=1, most=MOST_THOUSANDTHS)
        return thousandths

    def read(value: Any) -> int:
        number = _number(value)
        if not 0 < number <= _MUCH:
            text = "Send a quantity above {least} and up to {most}."
            raise Wrong("out_of_range", text, least=0, most=_MUCH)
        amount = Decimal(number).quantize(_THOUSANDTH)
        if amount != number:
            raise Wrong("too_precise", "Send a quantity with at most {most} decimals.", most=3)
        return int(amount * 1000)

    schema = {
        "type": "number", "exclusiveMinimum": 0, "maximum": float(_MUCH), "multipleOf": 0.001,
    }  # fmt: skip
    return Format(check, schema, show_quantity, read=read)


def show_quantity(thousandths: int) -> int | float:
    """Return the JSON form: 1500 → 1.5, 2000 → 2."""
    return thousandths / 1000 if thousandths % 1000 else thousandths // 1000


def show_money(centavos: int) -> int | float:
    """Return the JSON form: 1050 → 10.5, 1000 → 10."""
    # Both are exact to the centavo: the amounts stay below 2**53 centavos.
    return centavos / 100 if centavos % 100 else centavos // 100


def _hundredths(number: int | Decimal, what: str) -> int:
    amount = Decimal(number).quantize(_CENTAVO)
    # A comparison is exact for any number of digits; arithmetic would round.
    if amount != number:
        raise Wrong("too_precise", f"Send {what} with at most {{most}} decimals.", most=2)
    return int(amount * 100)


def _no_percentage() -> Wrong:
    text = "Send a percentage above {least} and up to {most}."
    return Wrong("out_of_range", text, least=0, most=100)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Wrong("wrong_type", "Send a whole number.")
    return value


def _number(value: Any) -> int | Decimal:
    if isinstance(value, float) and isfinite(value):
        return Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise Wrong("wrong_type", "Send a number.")
    return value
