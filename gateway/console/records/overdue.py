"""Marks tasks and invoices whose due date has passed."""

from typing import Any

from markupsafe import escape

from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.records.values.dates import Moment
from gateway.texts import Texts

OPEN = {"tasks": ("completed", False), "invoices": ("status", "pending")}
"""The column, by table, whose value says that something is still due."""
FIELD = "dueDate"


def marks(resource: Resource, name: str) -> bool:
    """Return whether a field of a resource is marked when its time has passed."""
    return name == FIELD and resource.table in OPEN


def is_overdue(record: Record, at: Moment) -> bool:
    """Return whether a task or an invoice is open after its due date."""
    column, value = OPEN[record.resource.table]
    due: Any = record["due_at"]
    if due is None or record[column] != value:
        return False
    return at.has_passed(due, bool(record["due_day"]))


def badge(texts: Texts) -> str:
    """Return the mark, as a word."""
    return f'<span class="badge is-overdue">{escape(texts("overdue"))}</span>'
