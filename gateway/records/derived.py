"""Defines the fields that are computed on every read, such as whether an invoice is overdue."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.records.values.global_ids import global_id


@dataclass(frozen=True, eq=False, slots=True)
class Derived:
    """A field that is computed on every read and is part of the ETag.

    With the name of a stored field it replaces that field.
    """

    name: str
    columns: Sequence[str]
    of: Callable[..., Any]
    """(the time of the read as a dates.Moment, the stored values of `columns`) → value."""
    schema: Mapping[str, Any]
    description: str
    example: Any
    constant: bool = False
    """Whether it never changes, so that the ETag does not need it."""


def varying(fields: Sequence[Derived]) -> tuple[Derived, ...]:
    """Return the fields that can change."""
    return tuple(d for d in fields if not d.constant)


def global_id_of(kind: str) -> Derived:
    """Return the field `globalId`: the id by which the storefront names a record of this type."""
    return Derived(
        "globalId", ("id",), lambda at, record_id: global_id(kind, record_id), {"type": "string"},
        f"Id of the {kind} in the storefront.", global_id(kind, "018f3a5b7c9d1e2f3a4b5c6d"),
        constant=True,
    )  # fmt: skip
