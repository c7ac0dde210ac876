"""Reads the table of the headings that files have for the fields of each resource."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from gateway.records.values.folding import fold

_FILE = Path(__file__).with_name("headings.toml")
_SIGNS = re.compile(r"[^\w]|_")
_DIGITS = re.compile(r"[0-9]+", re.ASCII)
_NUMBERED = re.compile(r"(.+) \([0-9]+\)", re.ASCII | re.S)
_OTHERS = ("ignored", "beside", "fallback")

Places = Mapping[str, Mapping[str, int]]
"""Target → the key of a heading → its place in the list of the target."""


@dataclass(frozen=True, slots=True)
class Headings:
    """The headings of a resource. A target is a field, or a part of one such as a first name."""

    targets: Places
    beside: Mapping[str, Places]
    fallback: Mapping[str, Sequence[frozenset[str]]]
    ignored: frozenset[str]


def key(heading: str) -> str:
    """Return what is compared of a heading: no case, accents, blanks and signs, `#` for numbers."""
    return _DIGITS.sub("#", _SIGNS.sub("", fold(heading)))


def numbered(headings: Sequence[str]) -> list[str]:
    """Return the headings, each that stands there before with a number: `Phone (2)`."""
    there: dict[str, int] = {}
    shown = []
    for heading in headings:
        times = there[heading.casefold()] = there.get(heading.casefold(), 0) + 1
        shown.append(f"{heading} ({times})" if heading and times > 1 else heading)
    return shown


def repeated(headings: Sequence[str]) -> Mapping[int, int]:
    """Return the places of the headings that `numbered` has made, each with the first one's."""
    first = {heading.casefold(): place for place, heading in reversed(list(enumerate(headings)))}
    found = {place: _NUMBERED.fullmatch(heading) for place, heading in enumerate(headings)}
    return {
        place: first[match[1].casefold()]
        for place, match in found.items()
        if match is not None and match[1].casefold() in first
    }


@cache
def of(plural: str) -> Headings:
    """Return the headings of a resource, none for one without files of other programs."""
    table = _table().get(plural, {})
    return Headings(
        _places({name: of for name, of in table.items() if name not in _OTHERS}),
        {name: _places(of) for name, of in table.get("beside", {}).items()},
        {
            name: [frozenset(map(_listed, spellings)) for spellings in lists]
            for name, lists in table.get("fallback", {}).items()
        },
        frozenset(map(_listed, table.get("ignored", ()))),
    )


@cache
def several() -> frozenset[str]:
    """Return the targets that more than one column can fill."""
    return frozenset(_table()["several"])


@cache
def words(target: str) -> Mapping[str, str]:
    """Return what the words of other programs mean in a field of true and false."""
    lists = _table()["words"].get(target, {})
    return {fold(word): meaning for meaning, found in lists.items() for word in found}


@cache
def grams() -> Mapping[str, Decimal]:
    """Return the grams of each unit of weight, by target."""
    return {name: Decimal(text) for name, text in _table()["grams"].items()}


@cache
def sizes() -> Mapping[str, int]:
    """Return the sizes of companies, each with its largest number of people."""
    return dict(_table()["sizes"])


@cache
def nothing(kind: str) -> frozenset[str]:
    """Return what stands in a cell in place of an option or a stock, folded."""
    return frozenset(map(fold, _table()["none"][kind]))


def _places(lists: Mapping[str, Sequence[str]]) -> Places:
    return {
        target: {_listed(heading): place for place, heading in enumerate(headings)}
        for target, headings in lists.items()
    }


def _listed(heading: str) -> str:
    return key(heading.replace("#", "0"))


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))
