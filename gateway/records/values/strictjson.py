"""Parses and writes JSON by RFC 8259, more strictly than the standard library.

It refuses NaN and Infinity, numbers that overflow a double, duplicate keys with different values,
lone surrogates, U+0000, more than 64 levels and more than 10,000 values. A number with a fraction
or an exponent becomes a Decimal, so that a check sees it without rounding, and keeps its text for
`dumps`.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from math import isinf
from typing import Any, NoReturn

import msgspec

DEPTH = 64
MOST_VALUES = 10_000
"""Values of one text: each takes microseconds, and a megabyte has room for half a million."""


class InvalidJson(ValueError):
    """The refusal of a JSON text; the message is one sentence for the client's developer."""


class Digits(Decimal):
    """A number with its original text, such as 1.10 for 1.1 or 1e2 for 100."""

    text: str

    @classmethod
    def of(cls, value: Decimal, text: str) -> "Digits":
        number = cls(value)
        number.text = text
        return number


def decode(data: bytes) -> Any:
    """Return the value of a JSON text in UTF-8. Raises InvalidJson."""
    # A text of that many bytes cannot have more values.
    if len(data) <= MOST_VALUES and (b"\\" not in data or _CAREFUL.search(data) is None):
        try:
            return _decode_plain(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, _NotPlain):
            pass
    if _is_crowded(data):
        raise InvalidJson(f"The body has more than {MOST_VALUES} values; send fewer.")
    value = _decode_any(data)
    # Only an escape can produce a surrogate or U+0000, and only brackets nest.
    if b"\\u" in data or data.count(b"[") + data.count(b"{") > DEPTH:
        _inspect(value)
    return value


def _decode_plain(data: bytes) -> Any:
    """Return the value of a text ; raise for one that needs the slower decoder."""
    value = _PLAIN(data)
    # It keeps only the last value of a repeated key: then the text has more quotes than the value.
    if _quotes(value, DEPTH) != data.count(b'"'):
        raise _NotPlain
    return value


def _quotes(value: Any, levels: int) -> int:
    """Return the number of quotes around the keys and strings of a value up to `levels` deep."""
    kind = type(value)
    if kind is dict or kind is list:
        if not levels:
            raise _NotPlain
        quotes, inner = (2 * len(value), value.values()) if kind is dict else (0, value)
        for item in inner:
            quotes += 2 if type(item) is str else _quotes(item, levels - 1)
        return quotes
    # -0 must keep its text, but this decoder turns it into 0.
    if kind is int and not value:
        raise _NotPlain
    return 2 if kind is str else 0


def _decode_any(data: bytes) -> Any:
    """Return the value of a text. Raises InvalidJson with the place of the first error."""
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidJson(f"The body is not UTF-8 at byte {error.start}.") from None
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    except InvalidJson:
        raise
    except RecursionError:
        raise InvalidJson(_TOO_DEEP) from None
    except ValueError:
        # Python limits the digits of an integer.
        raise InvalidJson("The body contains a number with too many digits.") from None


def dumps(value: Any) -> str:
    """Return compact JSON text of a value from `decode`, each number with its original digits."""
    try:
        return _ENCODER.encode(value)
    except TypeError:
        # The encoder cannot write the original text of a number.
        return _written(value)


def depth(value: Any) -> int:
    """Return how deep arrays and objects are nested in `value`; 0 for a plain value."""
    deepest = 0
    waiting = [(value, 1)]
    while waiting:
        item, level = waiting.pop()
        if isinstance(item, dict | list):
            deepest = max(deepest, level)
            inner = item.values() if isinstance(item, dict) else item
            waiting.extend((child, level + 1) for child in inner)
    return deepest


class _NotPlain(Exception):
    """The text needs the slower decoder."""


# Escapes of a quote, of U+0000 and of surrogates.
_CAREFUL = re.compile(rb'\\(?:"|u0000|u[dD])')
_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = f"The body has more than {DEPTH} nested levels."


def _is_crowded(data: bytes) -> bool:
    """Return whether there are too many values. Each follows a comma or a bracket, or is first."""
    if _separators(data) < MOST_VALUES:
        return False
    # Separators inside of strings do not count.
    plain = data.replace(rb"\\", b"").replace(rb"\"", b"")
    # Each separator has at most two strings: a key and its value.
    if plain.count(b'"') > 4 * MOST_VALUES:
        return True
    return _separators(b'"'.join(plain.split(b'"')[::2])) >= MOST_VALUES


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _inspect(value: Any) -> None:
    if depth(value) > DEPTH:
        raise InvalidJson(_TOO_DEEP)
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise InvalidJson("The body contains the character U+0000, which is not allowed.")
            if _SURROGATE.search(item):
                raise InvalidJson("The body contains a lone surrogate (\\ud800 to \\udfff).")
        elif isinstance(item, dict):
            waiting.extend(item)
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        first: dict[str, Any] = {}
        for key, member in pairs:
            earlier = first.setdefault(key, member)
            # Only duplicate keys are serialised: serialising every level again takes minutes.
            if earlier is not member and not _same(earlier, member):
                # The key can contain any text, so the message shows it as JSON and shortened.
                shown = json.dumps(key)[:80]
                raise InvalidJson(f"The body has the key {shown} twice with different values.")
    return value


def _same(one: Any, other: Any) -> bool:
    if type(one) is type(other) and not isinstance(one, dict | list):
        return bool(one == other)
    return _exactly(one) == _exactly(other)


def _exactly(value: Any) -> str:
    """Return a text that is equal for equal JSON and differs for true and 1."""
    return json.dumps(value, sort_keys=True, default=_number)


def _written(value: Any) -> str:
    if isinstance(value, dict):
        members = (f"{_written(name)}:{_written(inner)}" for name, inner in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, Digits):
        return value.text
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _int(text: str) -> int | Decimal:
    return int(text) if text != "-0" else Digits.of(Decimal(0), text)


def _float(text: str) -> Decimal:
    if isinf(float(text)):
        raise InvalidJson(f"The body contains a number that is out of range: {text[:40]}")
    try:
        # int() would write all digits of a zero with a huge exponent.
        return Digits.of(Decimal(text) or Decimal(0), text)
    except InvalidOperation:
        raise InvalidJson(f"The body contains a number that is out of range: {text[:40]}") from None


def _constant(text: str) -> NoReturn:
    raise InvalidJson(f"The body contains {text}, which is not JSON.")


def _number(value: Any) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"not JSON: {type(value).__name__}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_PLAIN = msgspec.json.Decoder(float_hook=_float).decode
_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_int, parse_float=_float, parse_constant=_constant
)
