"""Converts between the JSON form of a value and the text of a CSV cell, without loss.

A spreadsheet takes a cell that begins with one of `STARTS` for a formula. Such a text gets an
apostrophe before it, and reading removes exactly that one. Numbers are written as they are. Lists
and objects are JSON. An empty cell is no value; the empty text is an apostrophe alone.
"""

import re
from decimal import Decimal
from typing import Any

import msgspec

from gateway.records.values.format import Format, Wrong
from gateway.records.values.strictjson import InvalidJson, decode

STARTS = frozenset("=+-@\t\r\n＝＋－＠")
_MARK = "'"
_MARKED = STARTS | {_MARK}
_PLAIN = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?", re.ASCII)
_BRAZILIAN = re.compile(r"(-?)([0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{1,30}),([0-9]{1,2})", re.ASCII)
_ENGLISH = re.compile(r"(-?)([0-9]{1,3}(?:,[0-9]{3})+)\.([0-9]{1,2})", re.ASCII)
_YES = frozenset(("true", "1", "yes", "sim", "verdadeiro"))
_NO = frozenset(("false", "0", "no", "não", "nao", "falso"))
_encode = msgspec.json.Encoder().encode


def write(value: Any) -> str:
    """Return the cell of a value in its JSON form; of None, an empty one."""
    if value is None:
        return ""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    return _encode(value).decode()


def inert(text: str) -> str:
    """Return a text in the form that no spreadsheet takes for a formula."""
    if text and text[0] not in _MARKED:
        return text
    if text[:1] == _MARK and text[1:2] and text[1] not in _MARKED:
        # Reading leaves this apostrophe alone.
        return text
    return _MARK + text


def plain(cell: str) -> str:
    """Return the text of a cell: the reverse of `inert`."""
    return cell[1:] if cell[:1] == _MARK and (len(cell) == 1 or cell[1] in _MARKED) else cell


def read(form: Format, cell: str) -> Any:
    """Return the JSON value of a cell that is not empty. Raises Wrong."""
    kind = form.schema.get("type", "string")
    if kind == "string":
        return plain(cell)
    text = plain(cell).strip()
    if kind in ("number", "integer"):
        return _number(text)
    if kind == "boolean":
        return _boolean(text)
    if kind == "array" and not text.startswith("[") and _of_texts(form):
        return [item.strip() for item in text.split(";") if item.strip()]
    try:
        return decode(text.encode(errors="replace"))
    except InvalidJson:
        example = '["vip","fair"] or vip;fair' if _of_texts(form) else '{"key":"value"}'
        what = "a list" if kind == "array" else "an object"
        raise Wrong("wrong_type", f"Write {what} as JSON, such as {example}.") from None


def _of_texts(form: Format) -> bool:
    return bool(form.schema.get("items", {}).get("type") == "string")


def _number(text: str) -> int | Decimal:
    """Read 1234.5 and, where it is clear, 1.234,50 and 1,234.50."""
    digits = text.removeprefix("R$").replace("\u00a0", "").strip()
    if _PLAIN.fullmatch(digits):
        return Decimal(digits) if "." in digits else int(digits)
    found = _BRAZILIAN.fullmatch(digits) or _ENGLISH.fullmatch(digits)
    if found is None:
        raise Wrong("wrong_type", "Write a number with a decimal point, such as 1234.50.")
    sign, whole, part = found.groups()
    return Decimal(f"{sign}{whole.replace('.', '').replace(',', '')}.{part}")


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in _YES | _NO:
        raise Wrong("wrong_type", "Write true or false.")
    return word in _YES
