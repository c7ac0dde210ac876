"""What a resource is: one declaration, as data, that every door reads.

REST, validation, OpenAPI, the event catalogue and the generated SQL all come from here. Nothing in
this module does anything; a resource that needs more than this leaves the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


class Wrong(ValueError):
    """A value does not fit its format. `code` names the rule, `message` the fix.

    `at` says where inside the value, such as `[3].quantity`; `more` are further faults of it.
    """

    def __init__(self, code: str, message: str, at: str = "", more: Sequence["Wrong"] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.more = more


@dataclass(frozen=True, eq=False, slots=True)
class Format:
    """How a value is checked and kept: `parse` sent → stored (raises Wrong), `show` stored → sent.

    `schema` is the JSON Schema of what is sent, `shown` of what is shown where that is narrower.
    `show` is None when the stored value is what is shown.
    """

    parse: Callable[[Any], Any]
    schema: Mapping[str, Any]
    show: Callable[[Any], Any] | None = None
    shown: Mapping[str, Any] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Beside:
    """A column kept beside a field's own, computed from the value as it was sent."""

    column: str
    of: Callable[[Any], Any]


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """The field holds ids of records of `noun`, kept in `table`, that must be the caller's own.

    With `by`, the field of that name in the same body says which of `tables` it is.
    """

    noun: str = ""
    table: str = ""
    by: str = ""
    tables: Mapping[str, str] | None = None
    ends: bool = True
    """Whether what it points to can be deleted."""


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """One field: its JSON name and its column, who may write it, and how it looks."""

    name: str
    column: str
    format: Format
    description: str
    example: Any
    required: bool = False
    on_create: bool = True
    on_update: bool = True
    default: Any = None
    """The stored value when a create does not send it."""
    nullable: bool = True
    """Whether null in a body clears it: to `default`, where the field has one."""
    always: bool = False
    """Shown even when unset: null then."""
    made: bool = False
    """The server gives it a value when a create does not send one, so every record has it."""
    shown_example: Any = None
    """How the example is shown, where that does not follow from the format."""
    beside: Sequence[Beside] = ()
    reference: Reference | None = None
    listed_in: str = ""
    """For a list: the table (owner_id, value, record_id) that finds records by one of its items."""
    unique_in: str = ""
    """The table (owner_id, value, record_id) that lets an owner use a value only once."""


@dataclass(frozen=True, eq=False, slots=True)
class Derived:
    """A field that is computed whenever the record is read, and is part of its ETag.

    With the name of a stored field it is shown in that one's place.
    """

    name: str
    of: Callable[[Mapping[str, Any], int, str], Any]
    """(stored values by column, now in microseconds, the owner's time zone) → value."""
    schema: Mapping[str, Any]
    description: str
    example: Any


@dataclass(frozen=True, eq=False, slots=True)
class Filter:
    """A query parameter of the list. `sql` has `{}` where the value stands; `$1` is the owner.

    `{now}` in it is the time, and `{today}` the owner's day as a bare date is kept.
    `parse` turns the text into the value and raises Wrong when no record can match.
    """

    name: str
    sql: str
    parse: Callable[[str], Any]
    schema: Mapping[str, Any]
    description: str


@dataclass(frozen=True, eq=False, slots=True)
class Sort:
    """A key of the `sort` parameter and the indexed column behind it."""

    name: str
    column: str


LASTS = "not exists (select 1 from pending_ends e where e.owner_id = $1 and e.record_id = {})"
"""In the `sql` of a filter by a reference: nothing points to a record that is gone. See ends."""
CHANGED = "coalesce(updated_at, created_at)"
"""When a record last changed; indexed in exactly this spelling."""
BY_TIME = (Sort("createdAt", "created_at"), Sort("updatedAt", CHANGED))
BY_NAME = Sort("name", "sort_name")


@dataclass(frozen=True, eq=False, slots=True)
class Unset:
    """When a record goes: null the column in the records that point to it."""

    table: str
    column: str


@dataclass(frozen=True, eq=False, slots=True)
class Drop:
    """When a record goes: take its id out of the lists that hold it (see Field.listed_in)."""

    table: str
    column: str
    listed_in: str


@dataclass(frozen=True, eq=False, slots=True)
class Remove:
    """When a record goes: remove the records that belong to it, without events."""

    table: str
    column: str


Cascade = Unset | Drop | Remove


@dataclass(frozen=True, eq=False)
class Resource:
    """One kind of record."""

    noun: str
    plural: str
    table: str
    description: str
    fields: Sequence[Field]
    events: Mapping[str, Sequence[str]]
    """The change → the fields of `data`, in order. A change that is missing emits nothing."""
    search: Sequence[str] = ()
    """Names of the text fields that `search` looks into."""
    folded_sort: str = ""
    """Name of the text field whose folded form is the column `sort_name`."""
    filters: Sequence[Filter] = ()
    sorts: Sequence[Sort] = BY_TIME
    derived: Sequence[Derived] = ()
    cascades: Sequence[Cascade] = ()
    compute: Callable[[Mapping[str, Any] | None, dict[str, Any], int], dict[str, Any]] | None = None
    """Further columns of a write: (the stored record or None, the columns to be written, now)."""
    hidden: Sequence[str] = ()
    """Columns that `compute` fills and no field shows."""
    announce_on: Sequence[str] = ()
    """Fields whose presence in an update always emits the event, changed or not."""
    deletable: bool = True

    @property
    def path(self) -> str:
        """The collection's path on the REST door."""
        return f"/api/{self.plural}"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What is read of a record, in this order; gateway.views counts on it."""
        own = (*SYSTEM_COLUMNS, *(f.column for f in self.fields))
        beside = (b.column for f in self.fields for b in f.beside)
        return tuple(dict.fromkeys((*own, *beside, *self.hidden)))

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Where each of `columns` stands."""
        return {column: i for i, column in enumerate(self.columns)}

    @cached_property
    def long(self) -> tuple[str, ...]:
        """The columns whose text may be much longer than a line."""
        return tuple(
            f.column for f in self.fields if f.reference is None and _is_long(f.format.schema)
        )

    @cached_property
    def named(self) -> Mapping[str, Field]:
        return {f.name: f for f in self.fields}

    @cached_property
    def references(self) -> tuple[tuple[Field, Reference], ...]:
        """The fields that hold ids of other records, each with what it may point to."""
        return tuple((f, f.reference) for f in self.fields if f.reference is not None)

    @cached_property
    def ending(self) -> tuple[Field, ...]:
        """The references that are unset, or shortened, when what they point to goes."""
        return tuple(f for f, to in self.references if to.ends and not to.by)

    @cached_property
    def belongs(self) -> tuple[Field, ...]:
        """The references to a record that takes this one along when it goes."""
        return tuple(f for f, to in self.references if to.by)

    @cached_property
    def shows(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        """(position in `columns`, show) of each field that is not shown as it is stored."""
        found = ((self.position[f.column], f.format.show) for f in self.fields)
        return tuple((position, show) for position, show in found if show is not None)


LINE = 2_048
SYSTEM_COLUMNS = ("id", "owner_id", "version", "created_at", "updated_at")


def _is_long(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("array", "object") or schema.get("maxLength", 0) > LINE
