"""Reads the cells of a line as the values of a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from gateway.domain.import_lines import Line
from gateway.domain.imports import headings, matching
from gateway.domain.imports.company_names import must_be_name
from gateway.domain.imports.field_filling import Filled, Filling
from gateway.records.errors import Fault
from gateway.records.record import Draft, check
from gateway.records.resource import Resource
from gateway.records.values import csv_cells as texts
from gateway.records.values.csv_cells import Written
from gateway.records.values.formats import Wrong


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line as it is read: its id, its values by field, and the draft of a new record."""

    number: int
    cells: list[str]
    crowded: bool
    record_id: str
    sent: Mapping[str, Any]
    wrong: Sequence[Fault]
    new: Draft
    company: str
    """The name of its company."""
    lines: Sequence[str]
    """Lines of its notes, which a record that is there gets beside its own."""

    def without(self, resource: Resource, faults: Sequence[Fault]) -> "ReadLine":
        """Return the line without the values of the fields with these faults."""
        names = {base(fault.field) for fault in faults}
        sent = {name: value for name, value in self.sent.items() if name not in names}
        new = Draft(dict(self.new.values), dict(self.new.sent), [*faults, *self.new.faults])
        for field in (resource.named[name] for name in names if name in new.sent):
            del new.sent[field.name]
            for column in (field.column, *(beside.column for beside in field.beside)):
                del new.values[column]
            if field.default is not None:
                new.values[field.column] = field.default
        return replace(self, sent=sent, wrong=[*faults, *self.wrong], new=new)


def base(field: str) -> str:
    """Return the name of the field of a fault: `tags` of `tags[3]`."""
    return field.partition("[")[0].partition(".")[0]


def read_line(resource: Resource, filling: Filling, line: Line, written: Written) -> ReadLine:
    """Return a line with its values; what cannot be read is among its faults."""
    number, cells = line
    filled = filling.fill(cells)
    sent, wrong = _values(resource, filled, written)
    fresh = dict(sent)
    if filled.spare_name:
        fresh["name"] = filled.spare_name
    if filled.lines:
        fresh["notes"] = "\n".join(filled.lines)
    company = filled.company
    if company:
        try:
            must_be_name(company)
        except Wrong as fault:
            wrong += fault.faults("companyId")
            company = ""
    new = check(resource, matching.with_source(resource, fresh), from_json=True, creating=True)
    new.faults[:0] = wrong
    return ReadLine(
        number=number,
        cells=cells,
        crowded=len(cells) > filling.width,
        record_id=filled.record_id,
        sent=sent,
        wrong=wrong,
        new=new,
        company=company,
        lines=filled.lines,
    )


def _values(
    resource: Resource, filled: Filled, written: Written
) -> tuple[dict[str, Any], list[Fault]]:
    """Return the JSON values by field, and what cannot be read."""
    sent, wrong = dict(filled.values), list(filled.faults)
    for name, cell in filled.cells.items():
        try:
            sent[name] = texts.read(resource.named[name].format, cell, written)
        except Wrong as fault:
            wrong += fault.faults(name)
    if filled.grams and "weightGrams" not in sent:
        try:
            weight = Decimal(texts.read(resource.named["price"].format, filled.grams, written))
            grams = (weight * headings.grams()[filled.unit]).to_integral_value(ROUND_HALF_UP)
            sent["weightGrams"] = int(grams)
        except Wrong as fault:
            wrong += fault.faults("weightGrams")
    return sent, wrong
