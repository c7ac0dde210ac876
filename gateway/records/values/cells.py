"""Converts between the JSON form of a value and the text of a CSV cell, without loss.

A spreadsheet takes a cell that begins with one of `STARTS` for a formula. Such a text gets an
apostrophe before it, and so does one with outer blanks or invisible characters, which a cell
otherwise loses; reading removes exactly that apostrophe. Lists and objects are JSON. An empty cell
is no value; the empty text is an apostrophe alone.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from gateway.records.values import written_dates, written_numbers
from gateway.records.values.blanks import clean
from gateway.records.values.format import Format, Wrong
from gateway.records.values.strictjson import InvalidJson, decode

STARTS = frozenset("=+-@\t\r\n＝＋－＠")
_MARK = "'"
_MARKED = STARTS | {_MARK}
_YES = frozenset(("true", "1", "yes", "sim", "verdadeiro", "y", "s"))
_NO = frozenset(("false", "0", "no", "não", "nao", "falso", "n"))
KEY_CHARACTERS = 64
"""A text of at most so many characters is a code, a number of a document or a phone."""
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Written:
    """How a file writes numbers and dates, and the time zone of times without an offset."""

    numbers: str = written_numbers.AUTO
    dates: str = written_dates.AUTO
    zone: str = "UTC"


AS_JSON = Written()


def write(value: Any, numbers: str = written_numbers.POINT) -> str:
    """Return the cell of a value in its JSON form; of None, an empty one.

    `numbers` is the form of a number that is a value by itself.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return written_numbers.write(value, numbers)
    return _encode(value).decode()


def inert(text: str) -> str:
    """Return a text in the form that no spreadsheet takes for a formula, and that `plain` reads."""
    return _MARK + text if (text[:1] == _MARK and _hides(text[1:])) or _needs(text) else text


def plain(cell: str) -> str:
    """Return the text of a cell: the reverse of `inert`, and clean where it has no mark."""
    if cell[:1] == _MARK and _hides(cell[1:]):
        return cell[1:]
    text = clean(cell)
    return text[1:] if text[:1] == _MARK and _hides(text[1:]) else text


def _needs(text: str) -> bool:
    """Return whether a text is read back only with a mark."""
    return not text or text[0] in STARTS or clean(text) != text


def _hides(text: str) -> bool:
    """Return whether an apostrophe before this text is a mark."""
    return text[:1] == _MARK or _needs(text)


@lru_cache(maxsize=512)
def kind_of(form: Format) -> str:
    """Return what the cells of a format are: `number`, `date`, `text`, `boolean`, `list`, …"""
    kind = form.schema.get("type", "string")
    if kind == "integer":
        return "number"
    if any(one.get("format") == "date-time" for one in form.schema.get("anyOf", ())):
        return "date"
    return str(kind)


def read(form: Format, cell: str, written: Written = AS_JSON) -> Any:
    """Return the JSON value of a cell that is not empty. Raises Wrong."""
    kind = kind_of(form)
    text = plain(cell)
    if kind == "string":
        if written_numbers.is_shortened(text) and _is_code(form):
            raise written_numbers.shortened()
        return text
    if kind == "number":
        if form.schema.get("maximum") == 100:
            text = text.removesuffix("%")
        return written_numbers.read(text, written.numbers)
    if kind == "date":
        return written_dates.read(text, written.dates, written.zone)
    if kind == "boolean":
        return _boolean(text)
    if kind == "array" and not text.startswith("[") and _of_texts(form):
        return _listed(text)
    try:
        return decode(text.encode(errors="replace"))
    except InvalidJson:
        example = '["vip","fair"] or vip;fair' if _of_texts(form) else '{"key":"value"}'
        what = "a list" if kind == "array" else "an object"
        raise Wrong("wrong_type", f"Write {what} as JSON, such as {example}.") from None


def _is_code(form: Format) -> bool:
    return int(form.schema.get("maxLength", 0)) in range(1, KEY_CHARACTERS + 1)


def _of_texts(form: Format) -> bool:
    return bool(form.schema.get("items", {}).get("type") == "string")


def _listed(text: str) -> list[str]:
    """Return the items of a list with one kind of separator: `;` or `|` let items have commas.

    Shops write a comma of an item as `\\,`.
    """
    separator = next((one for one in ";|" if one in text), r"(?<!\\),")
    items = re.split(separator if len(separator) > 1 else re.escape(separator), text)
    return [item for one in items if (item := one.replace(r"\,", ",").strip())]


def _boolean(text: str) -> bool:
    word = text.lower()
    if word not in _YES | _NO:
        raise Wrong("wrong_type", "Write true or false.")
    return word in _YES
