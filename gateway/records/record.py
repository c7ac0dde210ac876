"""Represents a stored record: values by column, version, and fields derived at one time."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from gateway.records.derived import Derived
from gateway.records.resource import Resource
from gateway.records.values import dates

ID, OWNER_ID, VERSION, CREATED_AT, UPDATED_AT = range(5)
"""Positions of the system columns in a row."""
Row = Sequence[Any]
"""Stored values in the order of `Resource.columns`."""


class Record(Struct, frozen=True):
    """One record of a resource. Amounts are centavos, times microseconds UTC."""

    resource: Resource
    row: Row
    derived: Sequence[Any] = ()
    """The values of `Resource.derived`, in order."""

    @property
    def id(self) -> str:
        record_id: str = self.row[ID]
        return record_id

    @property
    def owner_id(self) -> str:
        owner_id: str = self.row[OWNER_ID]
        return owner_id

    @property
    def version(self) -> int:
        version: int = self.row[VERSION]
        return version

    def __getitem__(self, name: str) -> Any:
        """Return the value of a column, or of the derived field that replaces it."""
        place = self.resource.derived_at.get(name)
        if place is not None:
            return self.derived[place]
        return self.row[self.resource.position[name]]

    def column(self, name: str) -> Any:
        """Return the stored value of a column, also where a derived field replaces it."""
        return self.row[self.resource.position[name]]

    @property
    def stored(self) -> dict[str, Any]:
        """The values as they are stored, by column."""
        return dict(zip(self.resource.columns, self.row, strict=True))

    def shown(self, name: str) -> Any:
        """Return the JSON form of a field, or of id, createdAt and updatedAt; None when unset."""
        resource = self.resource
        place = resource.derived_at.get(name)
        if place is not None:
            return self.derived[place]
        position, show = resource.forms[name]
        value = self.row[position]
        return value if value is None or show is None else show(value)

    @property
    def etag(self) -> str:
        """Text that changes with every change of the record, derived fields included."""
        tag = str(self.row[VERSION])
        resource = self.resource
        for derived, value in zip(resource.derived, self.derived, strict=True):
            field = resource.named.get(derived.name)
            if field is None:
                tag += f"-{derived.name}" if value and not derived.constant else ""
            elif value != self.row[resource.position[field.column]]:
                tag += f"-{value}"
        return tag


def record_of(resource: Resource, row: Row, now: int, zone: str) -> Record:
    """Return the record of a row at the time `now`, for an owner in the time zone `zone`."""
    return records_of(resource, [row], now, zone)[0]


def records_of(resource: Resource, rows: Iterable[Row], now: int, zone: str) -> list[Record]:
    """Return the records of rows at the time `now`, for an owner in the time zone `zone`."""
    if not resource.derived:
        return [Record(resource, row) for row in rows]
    at = dates.Moment(now, zone)
    derive = deriving(tuple(resource.derived), resource.columns)
    return [Record(resource, row, derive(at, row)) for row in rows]


@lru_cache(maxsize=128)
def deriving(
    fields: Sequence[Derived], columns: Sequence[str]
) -> Callable[[dates.Moment, Row], list[Any]]:
    """Return a function from a time and a row of `columns` to the values of derived fields."""
    each = [(d.of, [columns.index(column) for column in d.columns]) for d in fields]

    def derive(at: dates.Moment, row: Row) -> list[Any]:
        return [of(at, *[row[place] for place in places]) for of, places in each]

    return derive
