"""Reads the cells of a line as the values of a record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.import_lines import Line
from gateway.domain.imports import matching
from gateway.domain.imports.columns import ID
from gateway.domain.imports.jobs import Import
from gateway.records.draft import Draft, check
from gateway.records.errors import Fault
from gateway.records.resource import Resource
from gateway.records.values import cells as texts
from gateway.records.values.format import Wrong, of_json


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line as it is read: its id, its values by field, and the draft of a new record."""

    number: int
    crowded: bool
    record_id: str
    sent: Mapping[str, Any]
    wrong: Sequence[Fault]
    new: Draft


def read_line(resource: Resource, job: Import, line: Line) -> ReadLine:
    """Return a line with its values; what cannot be read is among its faults."""
    number, cells = line
    record_id, sent, wrong = _values(resource, job, cells)
    new = check(resource, matching.with_source(resource, sent), read=of_json, creating=True)
    new.faults[:0] = wrong
    return ReadLine(number, len(cells) > len(job.headings), record_id, sent, wrong, new)


def _values(
    resource: Resource, job: Import, cells: Sequence[str]
) -> tuple[str, dict[str, Any], list[Fault]]:
    """Return the id, the JSON values by field, and what cannot be read. An empty cell is none."""
    record_id, sent, wrong = "", dict[str, Any](), list[Fault]()
    for name, cell in zip(job.fields, cells, strict=False):
        if not name or not cell:
            continue
        if name == ID:
            record_id = cell
            continue
        form = resource.named[name].format
        try:
            sent[name] = texts.read(form, cell)
        except Wrong as fault:
            wrong.append(Fault(name, fault.code, fault.message))
    return record_id, sent, wrong
