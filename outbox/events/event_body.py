"""Encode a delivery's body: JSON as JavaScript's JSON.stringify writes it.

Receivers that verify over their own serialisation of the parsed body then get the same bytes.
"""

import math
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

import msgspec

from outbox.durations import SECOND

# Above this, JavaScript numbers cannot represent every integer.
SAFE_INTEGER = 2**53

_encoder = msgspec.json.Encoder()


def message(event: str, now: int, data: Mapping[str, Any]) -> bytes:
    """Return the body of a delivery of `event`; `now` is microseconds UTC. Raise ValueError."""
    return encode({"event": event, "timestamp": now // SECOND, "data": data})


def thin(event: str, timestamp: int, record_id: str, url: str) -> bytes:
    """Return a body with the address of the record instead of its data; `timestamp` is seconds."""
    record = {"id": record_id, "type": event.partition(".")[0], "url": url}
    return encode({"event": event, "timestamp": timestamp, "data": record})


def encode(value: Any) -> bytes:
    """Return compact JSON in UTF-8. Raise ValueError for what JSON or JavaScript cannot carry."""
    return _encoder.encode(value) if _is_plain(value) else _text(value).encode("utf-8")


def _is_plain(value: Any) -> bool:
    """Return whether msgspec writes the same: it differs in floats and in large integers."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return bool(-SAFE_INTEGER <= value <= SAFE_INTEGER)
    if kind is dict:
        # Texts, which most values are, without a call.
        for key, each in value.items():
            if type(key) is not str:
                return False
            if type(each) is not str and each is not None and not _is_plain(each):
                return False
        return True
    return kind is list and all(map(_is_plain, value))


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
            raise ValueError("integers in an event must be within ±2**53")
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
    """Format a number by ECMA-262 Number::toString: exponents only outside 1e-7..1e21."""
    if not math.isfinite(value):
        raise ValueError("an event cannot carry NaN or Infinity")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The decimal point comes after `point` digits.
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
