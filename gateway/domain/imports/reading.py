"""Reads the cells of a line as the values of a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.import_lines import Line
from gateway.domain.imports import matching
from gateway.domain.imports.columns import ID
from gateway.domain.imports.jobs import Import
from gateway.records.draft import Draft, check
from gateway.records.errors import Fault
from gateway.records.resource import Resource
from gateway.records.values import cells as texts
from gateway.records.values.blanks import clean
from gateway.records.values.cells import Written
from gateway.records.values.format import Wrong, of_json


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


def read_line(resource: Resource, job: Import, line: Line, written: Written) -> ReadLine:
    """Return a line with its values; what cannot be read is among its faults."""
    number, cells = line
    record_id, sent, wrong = _values(resource, job, cells, written)
    new = check(resource, matching.with_source(resource, sent), read=of_json, creating=True)
    new.faults[:0] = wrong
    crowded = len(cells) > len(job.headings)
    return ReadLine(number, cells, crowded, record_id, sent, wrong, new)


def _values(
    resource: Resource, job: Import, cells: Sequence[str], written: Written
) -> tuple[str, dict[str, Any], list[Fault]]:
    """Return the id, the JSON values by field, and what cannot be read. A blank cell is none."""
    record_id, sent, wrong = "", dict[str, Any](), list[Fault]()
    for name, cell in zip(job.fields, cells, strict=False):
        if not name or not clean(cell):
            continue
        if name == ID:
            record_id = clean(cell)
            continue
        form = resource.named[name].format
        try:
            sent[name] = texts.read(form, cell, written)
        except Wrong as fault:
            wrong.append(Fault(name, fault.code, fault.message))
    return record_id, sent, wrong
