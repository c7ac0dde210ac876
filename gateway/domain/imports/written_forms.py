"""Judges how a file writes numbers and dates, by all of its cells and by its separator."""

from collections.abc import Iterable, Sequence

from gateway.domain.imports.columns import field_of
from gateway.domain.imports.import_options import Options
from gateway.records.resource import Resource
from gateway.records.values import csv_cells as texts
from gateway.records.values import written_dates, written_numbers
from gateway.records.values.csv_cells import Written
from gateway.records.values.folding import clean

_DATES = 2
"""By how many bits what dates show is shifted: what numbers show has two."""
_NUMBERS = (1 << _DATES) - 1
_ALL = _NUMBERS | _NUMBERS << _DATES
_STARTS = frozenset("0123456789.,+-(R$B \u00a0'\u2212\u20ac")


class Shown:
    """What the cells of each column show. It grows with the columns, not with the lines."""

    def __init__(self) -> None:
        self.bits: list[int] = []

    def see(self, cells: Sequence[str]) -> None:
        """Look at the cells of a further line."""
        bits = self.bits
        if len(bits) < len(cells):
            bits += [0] * (len(cells) - len(bits))
        for place, cell in enumerate(cells):
            if bits[place] != _ALL and cell[:1] in _STARTS and cell:
                text = clean(cell)
                bits[place] |= written_numbers.shows(text) | written_dates.shows(text) << _DATES


def written(
    resource: Resource, fields: Sequence[str], shown: Sequence[int], separator: str,
    options: Options, zone: str,
) -> Written:  # fmt: skip
    """Return how a file writes, whose columns fill these fields and have shown these bits."""
    kinds = [_kind(resource, name) for name in fields]
    numbers, dates = options.numbers, options.dates
    if numbers == written_numbers.AUTO:
        bits = [
            mask & _NUMBERS for mask, kind in zip(shown, kinds, strict=False) if kind == "number"
        ]
        numbers = judged(bits, separator, written_numbers.FORMS)
    if dates == written_dates.AUTO:
        bits = [mask >> _DATES for mask, kind in zip(shown, kinds, strict=False) if kind == "date"]
        dates = judged(bits, separator, written_dates.FORMS)
    return Written(numbers, dates, zone)


def judged(shown: Iterable[int], separator: str, choices: Sequence[str]) -> str:
    """Return one of the choices (undecided, first, second) by what cells show, else by separator.

    Cells that contradict each other decide nothing, and then neither does the separator.
    """
    seen = 0
    for mask in shown:
        seen |= mask
    # Spreadsheets write semicolons where the comma is the decimal sign, and the day is first there.
    return choices[seen or int(separator == ";")] if seen < len(choices) else choices[0]


def _kind(resource: Resource, name: str) -> str:
    field = resource.named.get(field_of(name))
    return "" if field is None else texts.kind_of(field.format)
