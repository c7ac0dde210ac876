"""What a resource is: one declaration, as data, that every door reads.

REST, validation, OpenAPI, the event catalogue and the generated SQL all come from here. Nothing in
this module does anything; a resource that needs more than this leaves the engine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from gateway.records.values import dates
from gateway.records.values.format import Format


@dataclass(frozen=True, eq=False, slots=True)
class Beside:
    """A column kept beside a field's own, computed from the typed value.

    `part` says that it belongs to the value, and is not merely another form of it.
    """

    column: str
    of: Callable[[Any], Any]
    part: bool = False


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


Within = Literal["owner", "store", "installation"]


@dataclass(frozen=True, eq=False, slots=True)
class Unique:
    """A value may be used once: within its owner, its store, or the installation.

    `table` holds the values that are in use: (owner_id, value, record_id), with the column
    `store_id` in the place of `owner_id` within a store, and neither within the installation. With
    `folded`, values that differ in case or accents alone are the same.
    """

    table: str
    within: Within = "owner"
    folded: bool = False

    @property
    def scope(self) -> str:
        """The column that tells within what; empty within the installation."""
        return {"owner": "owner_id", "store": "store_id", "installation": ""}[self.within]


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
    unique: Unique | None = None


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


Kind = Literal["text", "id", "boolean", "money", "cnpj", "from", "to"]
"""The typed value of a filter: `from` and `to` are an instant or a dates.Day, both inclusive."""


@dataclass(frozen=True, eq=False, slots=True)
class Filter:
    """What a list can be narrowed by. `sql` has `{}` where the value stands; `$1` is the owner.

    `{now}` in it is the time, and `{today}` the owner's day as a bare date is kept.
    """

    name: str
    sql: str
    kind: Kind
    description: str
    allowed: Sequence[str] = ()
    """The texts that can match, where they are a closed list."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Form:
    """Fields that are checked together. `noun` is what they are called together."""

    noun: str
    description: str
    fields: Sequence[Field]

    @cached_property
    def named(self) -> Mapping[str, Field]:
        return {f.name: f for f in self.fields}


@dataclass(frozen=True, eq=False, kw_only=True)
class Resource(Form):
    """One kind of record."""

    plural: str
    table: str
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
    deletable: bool = True

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What is read of a record, in this order: the system's, the fields', those beside."""
        own = (*SYSTEM_COLUMNS, *(f.column for f in self.fields))
        beside = (b.column for f in self.fields for b in f.beside)
        return tuple(dict.fromkeys((*own, *beside)))

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
    def offered(self) -> Mapping[str, Filter]:
        return {f.name: f for f in self.filters}

    @cached_property
    def derived_at(self) -> Mapping[str, int]:
        """Where among `derived` a field stands, by its name and the column in whose place it is."""
        found = {d.name: i for i, d in enumerate(self.derived)}
        named = self.named
        return found | {named[name].column: i for name, i in found.items() if name in named}

    @cached_property
    def forms(self) -> Mapping[str, tuple[int, Callable[[Any], Any] | None]]:
        """(position in `columns`, show) of what a record shows, by its name."""
        own = {f.name: (self.position[f.column], f.format.show) for f in self.fields}
        times = {
            name: (self.position[column], dates.show)
            for name, column in (("createdAt", "created_at"), ("updatedAt", "updated_at"))
        }
        return {"id": (self.position["id"], None), **own, **times}

    @cached_property
    def shows(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        """(position in `columns`, show) of each field that is not shown as it is stored."""
        found = ((self.position[f.column], f.format.show) for f in self.fields)
        return tuple((position, show) for position, show in found if show is not None)


LINE = 2_048
SYSTEM_COLUMNS = ("id", "owner_id", "version", "created_at", "updated_at")


def _is_long(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("array", "object") or schema.get("maxLength", 0) > LINE
