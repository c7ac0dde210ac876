"""The bytes of a delivery's body: JSON as JavaScript's JSON.stringify would write it.

Receivers that parse the body and verify over their own re-serialisation then get the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

# Past this a JavaScript number no longer holds every integer.
SAFE_INTEGER = 2**53


def encode(value: Any) -> bytes:
    """Compact JSON in raw UTF-8. Raises ValueError for what JSON or JavaScript cannot carry."""
    return _text(value).encode("utf-8")


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, int):
        if abs(value) > SAFE_INTEGER:
            raise ValueError("a whole number in an event must be within 2**53")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        members = (f"{encode_basestring(str(k))}:{_text(v)}" for k, v in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return "[" + ",".join(map(_text, value)) + "]"
    raise ValueError(f"an event cannot carry a {type(value).__name__}")


def _number(value: float) -> str:
    """ECMA-262 Number::toString: the shortest digits, exponents only outside 1e-7..1e21."""
    if not math.isfinite(value):
        raise ValueError("an event cannot carry NaN or Infinity")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The decimal point stands after `point` digits.
    point = int(exponent or 0) + (
        len(whole.lstrip("0")) or len(fraction.lstrip("0")) - len(fraction)
    )
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    head = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{sign}{head}e{'+' if point > 0 else '-'}{abs(point - 1)}"
