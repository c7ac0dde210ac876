"""Defines the types of a resource's declaration, which every door reads.

REST, validation, OpenAPI, the event catalogue and the generated SQL derive from it. This module
holds data only; a resource with rules of its own composes the steps in gateway.records.actions.

It is one module because each declaration uses nearly all of these types.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from msgspec import Raw

from gateway.records.derived import Derived
from gateway.records.values import dates
from gateway.records.values.formats import Format

HEADINGS = ("title", "name", "number", "code")
"""The fields that can name a record, in the order in which they are tried."""


@dataclass(frozen=True, eq=False, slots=True)
class DerivedColumn:
    """A second column of a field, computed from the typed value.

    `part` means that the column is part of the value, not another form of it.
    """

    column: str
    of: Callable[[Any], Any]
    part: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Reference:
    """A field with ids of records of `noun`, stored in `table`, that the owner must own.

    With `by`, the field of that name in the same body selects one of `tables`.
    """

    noun: str = ""
    table: str = ""
    by: str = ""
    tables: Mapping[str, str] | None = None
    ends: bool = True
    """Whether the record it points to can be deleted."""
    owns: bool = False
    """Whether the record it points to takes this one with it when it is deleted."""
    also: tuple[str, ...] = ()
    """Columns that describe the record it points to, and become null with it."""


Within = Literal["owner", "store", "installation"]


@dataclass(frozen=True, eq=False, slots=True)
class Unique:
    """A value that is unique within its owner, its store, or the installation.

    `table` contains the values in use: (owner_id, value, record_id). Within a store it has the
    column `store_id` instead of `owner_id`, within the installation neither. With `folded`, values
    that differ only in case or accents are equal.
    """

    table: str
    within: Within = "owner"
    folded: bool = False

    @property
    def scope(self) -> str:
        """The column of the scope; empty within the installation."""
        return {"owner": "owner_id", "store": "store_id", "installation": ""}[self.within]


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """A field: its JSON name, its column, when it is writable, and its format."""

    name: str
    column: str
    format: Format
    description: str
    example: Any
    """A JSON value of a request; None leaves the field out of the examples."""
    required: bool = False
    on_create: bool = True
    on_update: bool = True
    on_import: bool = False
    """Whether an import can set it where neither a create nor an update can."""
    default: Any = None
    """The stored value when a create does not send it."""
    nullable: bool = True
    """Whether null in a body clears it; it then has `default`, if the field has one."""
    always: bool = False
    """Whether it is shown as null when unset; else it is left out."""
    made: bool = False
    """Whether the server sets a value when a create does not, so that every record has one."""
    shown_example: Any = None
    """The JSON form of the example, where it does not follow from the format."""
    beside: Sequence[DerivedColumn] = ()
    reference: Reference | None = None
    listed_in: str = ""
    """For a list: the table (owner_id, value, record_id) that finds records by one of its items."""
    unique: Unique | None = None


Kind = Literal["text", "id", "boolean", "money", "cnpj", "from", "to"]
"""The typed value of a filter: `from` and `to` are an instant or a dates.Day, both inclusive."""


@dataclass(frozen=True, eq=False, slots=True)
class Filter:
    """A filter of a list. `{}` in `sql` stands for the value; `$1` is the owner.

    `{now}` is the time, and `{today}` the owner's day, stored as a bare date is.
    """

    name: str
    sql: str
    kind: Kind
    description: str
    allowed: Sequence[str] = ()
    """The texts that can match, if they are a closed list."""


@dataclass(frozen=True, eq=False, slots=True)
class Sort:
    """A key of the `sort` parameter and the indexed column behind it, which is never null.

    `falling` is the column of the descending order, where that puts empty values last by another.
    """

    name: str
    column: str
    falling: str = ""
    text: bool = False
    """Whether the values are texts, not numbers."""


LASTS = "not exists (select 1 from pending_ends e where e.owner_id = $1 and e.record_id = {})"
"""A condition for a filter by a reference: the record that it names is not deleted."""
CHANGED = "coalesce(updated_at, created_at)"
"""When a record last changed; indexed in exactly this spelling."""
BY_TIME = (Sort("createdAt", "created_at"), Sort("updatedAt", CHANGED))
BY_NAME = Sort("name", "sort_name", text=True)


def empty_last(name: str, column: str) -> Sort:
    """Return a sort by numbers whose empty values are last; indexed in exactly this spelling."""
    most = 9223372036854775807
    return Sort(name, f"coalesce({column}, {most})", f"coalesce({column}, -{most})")


@dataclass(frozen=True, eq=False, slots=True)
class Unset:
    """On delete of a record, null the column in the records that point to it.

    `also` are columns that describe the deleted record, and become null with it.
    """

    table: str
    column: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Drop:
    """On delete of a record, remove its id from the lists with it (see Field.listed_in)."""

    table: str
    column: str
    listed_in: str


@dataclass(frozen=True, eq=False, slots=True)
class Remove:
    """On delete of a record, delete the records that belong to it, without events.

    `counted` tells whether the table has running totals, as a resource's table does.
    """

    table: str
    column: str
    counted: bool = True


Cascade = Unset | Drop | Remove


@dataclass(frozen=True, eq=False, kw_only=True)
class Form:
    """A group of fields that are checked together. `noun` is the name of the group."""

    noun: str
    description: str
    fields: Sequence[Field]

    @cached_property
    def named(self) -> Mapping[str, Field]:
        return {f.name: f for f in self.fields}

    @cached_property
    def creatable(self) -> Mapping[str, Field]:
        """The fields that a create can set, by name."""
        return {f.name: f for f in self.fields if f.on_create}

    @cached_property
    def changeable(self) -> Mapping[str, Field]:
        """The fields that an update can set, by name."""
        return {f.name: f for f in self.fields if f.on_update}

    @cached_property
    def importable(self) -> Mapping[str, Field]:
        """The fields that an import can set, by name."""
        return {f.name: f for f in self.fields if f.on_create or f.on_update or f.on_import}

    @cached_property
    def restored(self) -> Mapping[str, Field]:
        """The fields that an import sets after it has created the record, by name."""
        return {name: f for name, f in self.importable.items() if not f.on_create}

    @cached_property
    def required(self) -> Sequence[str]:
        """The names of the fields that a create must set."""
        return [f.name for f in self.fields if f.required]

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The stored values of the fields that a create does not set, by column."""
        return {f.column: f.default for f in self.fields if f.default is not None}


@dataclass(frozen=True, eq=False, kw_only=True)
class Resource(Form):
    """One kind of record."""

    plural: str
    table: str
    events: Mapping[str, Sequence[str]]
    """The change → the fields of `data`, in order. A change without an entry emits no event."""
    search: Sequence[str] = ()
    """Names of the text fields that `search` matches."""
    numbers: Sequence[str] = ()
    """Names of the fields with phones and documents, which a search of a person finds in any form.

    Where such a field has `beside` columns, the first one is looked at, if it has a value.
    """
    folded_sort: str = ""
    """Name of the text field whose folded form is the column `sort_name`."""
    filters: Sequence[Filter] = ()
    sorts: Sequence[Sort] = BY_TIME
    filterable: Sequence[str] = ()
    """Names of fields that the filters of webhooks can use beside `data`: each event stores them.

    They are short and hold no personal data.
    """
    known_after: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The change → the fields, of `data` or filterable, that always have this JSON value after."""
    derived: Sequence[Derived] = ()
    cascades: Sequence[Cascade] = ()
    deletable: bool = True
    key: str = ""
    """Name of the field by which an import finds a record that is there; an index has its column.

    Where the field has `beside` columns, the first one is compared.
    """

    @cached_property
    def heading(self) -> str:
        """The name of the field that names a record to a reader; empty when none does."""
        return next((name for name in HEADINGS if name in self.named), "")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a record in order: the system's, the fields', their second columns."""
        own = (*SYSTEM_COLUMNS, *(f.column for f in self.fields))
        beside = (b.column for f in self.fields for b in f.beside)
        return tuple(dict.fromkeys((*own, *beside)))

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The position of each of `columns`."""
        return {column: i for i, column in enumerate(self.columns)}

    @cached_property
    def long(self) -> tuple[str, ...]:
        """The columns whose text can be much longer than a line."""
        return tuple(
            f.column for f in self.fields if f.reference is None and _is_long(f.format.schema)
        )

    @cached_property
    def references(self) -> tuple[tuple[Field, Reference], ...]:
        """The fields with ids of other records, each with its Reference."""
        return tuple((f, f.reference) for f in self.fields if f.reference is not None)

    @cached_property
    def ending(self) -> tuple[Field, ...]:
        """The references that lose an id when the record it names is deleted."""
        return tuple(f for f, to in self.references if to.ends and not to.by and not to.owns)

    @cached_property
    def belongs(self) -> tuple[Field, ...]:
        """The references to a record whose delete deletes this one."""
        return tuple(f for f, to in self.references if to.by or to.owns)

    @cached_property
    def offered(self) -> Mapping[str, Filter]:
        return {f.name: f for f in self.filters}

    @cached_property
    def derived_at(self) -> Mapping[str, int]:
        """The position in `derived` of a field, by its name and by the column that it replaces."""
        positions = {d.name: i for i, d in enumerate(self.derived)}
        named = self.named
        return positions | {named[name].column: i for name, i in positions.items() if name in named}

    @cached_property
    def forms(self) -> Mapping[str, tuple[int, Callable[[Any], Any] | None]]:
        """(position in `columns`, show) of each shown field, by its name."""
        own = {f.name: (self.position[f.column], f.format.show) for f in self.fields}
        times = {
            name: (self.position[column], dates.show)
            for name, column in (("createdAt", "created_at"), ("updatedAt", "updated_at"))
        }
        return {"id": (self.position["id"], None), **own, **times}

    @cached_property
    def shows(self) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
        """(position in `fields`, show) of each field whose JSON form is not its stored value.

        For a door that writes JSON: text that is JSON already stays as it is.
        """
        forms = enumerate(Raw if f.format.is_json else f.format.show for f in self.fields)
        return tuple((position, show) for position, show in forms if show is not None)

    @cached_property
    def derives(self) -> tuple[int | None, ...]:
        """For each of `derived`, the position in `fields` of the field it replaces, or None."""
        places = {f.name: place for place, f in enumerate(self.fields)}
        return tuple(places.get(d.name) for d in self.derived)


LINE = 2_048
SYSTEM_COLUMNS = ("id", "owner_id", "version", "created_at", "updated_at")


def _is_long(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") in ("array", "object") or schema.get("maxLength", 0) > LINE
