"""Checks the values of a request against a declaration: stored values, or all faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from gateway.records.values.formats import Wrong

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
    found = []
    for name, member in value.items():
        if name in named:
            found += unknown_members(named[name], member, f"{at}.{name}")
        else:
            found.append(f"{at}.{name}")
    return found


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
