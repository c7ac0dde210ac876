"""Represents a stored record, and the draft that the values of a request become.

A record has values by column, a version, and fields derived at one time. A draft has stored values
that its declaration allows, or all faults.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from msgspec import Struct

from gateway.records.derived import Derived
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form, Resource
from gateway.records.values import dates
from gateway.records.values.formats import Wrong

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


MOST_NAMED = 10
"""Names of unknown fields that a refusal has."""
UNKNOWN = "This field is unknown or read-only here; remove it."
STRICT = "handling=strict"


@dataclass(slots=True)
class Draft:
    """The checked values of a request. `unreadable` is set when it cannot be parsed at all.

    It collects the faults and does not raise them, because not_found and forbidden come first.
    """

    values: dict[str, Any] = field(default_factory=dict)
    """Stored values by column, of the sent fields alone (and the defaults of a create)."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The stored value of each sent field, by its name."""
    faults: list[Fault] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """The sent names that mean nothing, also those inside of lists and objects."""
    strict: bool = False
    """Whether such a name is a fault."""
    unreadable: Refusal | None = None

    def must_hold(self, more: Sequence[Fault] = ()) -> None:
        """Raise the refusal that names every fault, `more` included, and what would be ignored."""
        if self.unreadable is not None:
            raise self.unreadable
        named = [name[:64] for name in self.ignored[:MOST_NAMED]]
        faults = [*self.faults, *more]
        if self.strict:
            faults += [Fault(name, "unknown_field", UNKNOWN) for name in named]
        if not faults:
            return
        refused = refusal(faults)
        if self.strict:
            refused.facts["preference_applied"] = STRICT
        elif named:
            refused.facts["ignored"] = named
        raise refused


def check(
    form: Form,
    sent: Mapping[str, Any],
    *,
    from_json: bool = False,
    creating: bool = False,
    takes: Sequence[str] | None = None,
) -> Draft:
    """Check values by field name, in their JSON form with `from_json`, else typed.

    A create needs every required field, an update only the sent ones. `takes` lists the only
    fields that are writable, for the body of a verb.
    """
    draft = Draft(dict(form.defaults) if creating else {})
    if takes is None:
        writable = form.creatable if creating else form.changeable
    else:
        writable = {name: form.named[name] for name in takes if name in form.named}
    for name, value in sent.items():
        field = writable.get(name)
        if field is None:
            draft.ignored.append(name)
        elif value is None:
            _clear(draft, field, creating=creating)
        else:
            _take(draft, field, value, from_json=from_json)
            if field.format.parts is not None:
                draft.ignored += unknown_members(field.format.schema, value, name)
    if creating:
        _complete(draft, form, sent)
    return draft


def unknown_members(schema: Mapping[str, Any], value: Any, at: str) -> list[str]:
    """Return the places of the members of `value` that its schema does not name."""
    if isinstance(value, list):
        items = schema.get("items", {})
        if "properties" not in items:
            return []
        return [
            place
            for i, item in enumerate(value)
            for place in unknown_members(items, item, f"{at}[{i}]")
        ]
    named = schema.get("properties")
    if named is None or not isinstance(value, dict):
        return []
    paths = []
    for name, member in value.items():
        if name in named:
            paths += unknown_members(named[name], member, f"{at}.{name}")
        else:
            paths.append(f"{at}.{name}")
    return paths


def _take(draft: Draft, field: Field, value: Any, *, from_json: bool) -> None:
    form = field.format
    try:
        if form.parts is not None:
            stored = form.parts(value, from_json)
        else:
            if from_json and form.read is not None:
                value = form.read(value)
            stored = form.check(value)
    except Wrong as wrong:
        draft.faults += wrong.faults(field.name)
        return
    draft.sent[field.name] = stored
    draft.values[field.column] = stored
    for beside in field.beside:
        draft.values[beside.column] = beside.of(value)


def _clear(draft: Draft, field: Field, *, creating: bool) -> None:
    if field.required or not field.nullable:
        draft.faults.append(Fault(field.name, "not_nullable", f"{field.name} cannot be null."))
        return
    draft.sent[field.name] = None
    # In a field with a default, null means the default.
    draft.values[field.column] = field.default
    for beside in field.beside:
        draft.values[beside.column] = None


def _complete(draft: Draft, form: Form, sent: Mapping[str, Any]) -> None:
    for name in form.required:
        if name not in sent:
            draft.faults.append(Fault(name, "required", f"{name} is required."))


def refusal(faults: Sequence[Fault]) -> Refusal:
    """Return one refusal with all faults; its code is specific when all faults share it."""
    codes = {fault.code for fault in faults}
    code = codes.pop() if codes <= {"invalid_reference"} or codes <= {"invalid_cnpj"} else ""
    first = faults[0]
    said = first.sentence
    if more := len(faults) - 1:
        said = f"{said.removesuffix('.')}; {more} more error{'s' * (more > 1)} in details."
    return Refusal(code or "validation_error", said, faults=faults)
