"""Converts between the JSON form of a value and the text of a CSV cell, without loss.

A spreadsheet takes a cell that begins with one of `STARTS` for a formula. Such a text gets an
apostrophe before it, and so does one with outer blanks or invisible characters, which a cell
otherwise loses. A program that opens the file with another separator, or without its quotes, finds
further cells in a text: each that would begin so gets an apostrophe as well. Reading removes
exactly these apostrophes. Lists and objects are JSON, which escapes all of this. An
empty cell is no value; the empty text is an apostrophe alone.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from gateway.records.values import written_dates, written_numbers
from gateway.records.values.folding import UNSEEN, clean
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.strictjson import InvalidJson, decode

STARTS = frozenset("=+-@\t\r\n＝＋－＠")
_MARK = "'"
_SIGNS = r"=+\-@＝＋－＠"
# A quote after a separator is none for the reader of the other one. Each run is looked at at most
# twice: no part of these patterns repeats a separator that they begin with.
_RUN = '["' + "".join(one for one in UNSEEN if one not in "\t\r\n") + "]*+"
_CELL = rf"'*+{_RUN}(?:[{_SIGNS}\t]|\r(?!\n))"
_TABBED = rf"'*+{_RUN}[{_SIGNS}]"
UNMARKED = re.compile(rf"[,;|\r\n](?={_CELL})|\t(?={_TABBED})")
_MARKED = re.compile(rf"(?<=[,;|\r\n])'(?={_CELL})|(?<=\t)'(?={_TABBED})")
# Escaped also after an apostrophe, which is then none of ours.
_SIGN = re.compile(f"[{_SIGNS}]")
_OF_JSON = re.compile(r'"(?:[^"\\]|\\.)*+"|,-')
_HIDDEN = re.compile(rf"(?![\x00-\x7f])[{UNSEEN}]")
_IN_JSON = re.compile(rf'(?:^"|[,;|])\x27*+(?:\\"|[{UNSEEN}])*+[{_SIGNS}]')
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
    text = _encode(value).decode()
    if _SIGN.search(text) is not None:
        text = _OF_JSON.sub(_inert_json, text)
    return text if clean(text) == text else _HIDDEN.sub(_escaped, text)


def inert(text: str) -> str:
    """Return a text in the form that no spreadsheet takes for a formula, and that `plain` reads."""
    # Few texts need it, and a substitution costs more than a search.
    marked = text if UNMARKED.search(text) is None else UNMARKED.sub(_marked, text)
    return _MARK + marked if (text[:1] == _MARK and _hides(text[1:])) or _needs(text) else marked


def _marked(found: re.Match[str]) -> str:
    return found[0] + _MARK


def plain(cell: str) -> str:
    """Return the text of a cell: the reverse of `inert`, and clean where it has no mark."""
    text = cell
    if not (cell[:1] == _MARK and _hides(cell[1:])):
        text = clean(cell)
        if not (text[:1] == _MARK and _hides(text[1:])):
            return _MARKED.sub("", text)
    return _MARKED.sub("", text[1:])


def _inert_json(found: re.Match[str]) -> str:
    """Return a string of JSON whose further cells are inert, or a negative item of a list."""
    if found[0] == ",-":
        return ", -"
    return _IN_JSON.sub(_escaped, found[0])


def _escaped(found: re.Match[str]) -> str:
    """Return what was found in a string of JSON with its last character escaped."""
    return f"{found[0][:-1]}\\u{ord(found[0][-1]):04x}"


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
        shape = "a list" if kind == "array" else "an object"
        raise Wrong("wrong_type", f"Write {shape} as JSON, such as {example}.") from None


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
