"""Lists what the pages of a resource have of their own; all the rest follows from its declaration.

A resource without a line here has its pages too.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.records.audit import Actor
from gateway.records.record import Record
from outbox.database.transaction import Tx

More = Callable[[Tx, Actor, Record], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a resource's pages. Templates are named by their file under `templates`."""

    columns: Sequence[str] = ()
    """The fields of the list, the first of which names the record."""
    tabs: str = ""
    """The filter whose values are offered in one click."""
    live: bool = False
    """Whether the first page of the list follows what happens."""
    list_acts: str = ""
    """A template with further actions of the list."""
    more_tabs: str = ""
    """A template with tabs after those of `tabs`."""
    selection: str = ""
    """A template of the list in which records are selected."""
    row_acts: str = ""
    """A template with the actions of a row, in a column of its own."""
    tags: str = ""
    """A template with what stands beside the name of a record in the list."""
    acts: str = ""
    """A template with further actions of a record."""
    edited_in: str = ""
    """The state in which a record can be edited; empty when it can be in each."""
    above: str = ""
    """A template with what stands above the facts of a record."""
    beside: Sequence[str] = ()
    """Templates with what stands below the facts of a record, such as its last changes."""
    more: More | None = None
    """Reads what these templates show, in the transaction that reads the record."""
    left_out: Sequence[str] = ()
    """Fields that the page shows in another way."""
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The sections of the form, each saved by itself, with their fields; further fields are in the
    last one, and a new record begins with the first one."""
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the form offers for texts in rows, by `field.column`; another text stays as it is."""
    last: Sequence[str] = ()
    """Fields that the form has after all others."""
    unwritten: Sequence[str] = ()
    """Fields that the form does not have: another page changes them, or they follow from others."""
    columns_left_out: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns that the rows of a field do not have in the form."""
    editors: Mapping[str, str] = field(default_factory=dict)
    """Templates of the inputs of fields with rows."""
    links: Mapping[str, str] = field(default_factory=dict)
    """Fields with ids of records of these plurals that declare no reference."""
