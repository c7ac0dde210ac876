"""What is asked of a record, against its declaration: values to be stored, or all faults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from gateway.records.values.format import Read, Wrong, typed


@dataclass(slots=True)
class Draft:
    """What is asked for. What cannot be read at all is `unreadable`.

    The faults are kept, not raised: whether the record is there, and whose it is, is told first.
    """

    values: dict[str, Any] = field(default_factory=dict)
    """Stored values by column, only of what was sent (and the defaults of a create)."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The stored value of each field that was sent, by its name."""
    faults: list[Fault] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    unreadable: Refusal | None = None

    def must_hold(self, more: Sequence[Fault] = ()) -> None:
        """Raise the refusal that names every fault, `more` included."""
        if self.unreadable is not None:
            raise self.unreadable
        if self.faults or more:
            raise refusal([*self.faults, *more])


def check(
    form: Form,
    sent: Mapping[str, Any],
    *,
    read: Read = typed,
    creating: bool = False,
    takes: Sequence[str] | None = None,
) -> Draft:
    """Check values by field name, each as `read` takes it from a door.

    A create wants what is required, an update takes what is sent. With `takes` these fields alone
    are open, whoever writes them otherwise: what goes with a verb.
    """
    found = Draft()
    named = form.named
    for name, value in sent.items():
        wanted = named.get(name)
        if wanted is None or not _is_open(wanted, creating, takes):
            found.ignored.append(name)
        elif value is None:
            _clear(found, wanted, creating=creating)
        else:
            _take(found, wanted, value, read)
    if creating:
        _complete(found, form, sent)
    return found


def _is_open(wanted: Field, creating: bool, takes: Sequence[str] | None) -> bool:
    if takes is not None:
        return wanted.name in takes
    return wanted.on_create if creating else wanted.on_update


def _take(found: Draft, wanted: Field, value: Any, read: Read) -> None:
    form = wanted.format
    try:
        if form.parts is None:
            value = read(form, value)
            kept = form.check(value)
        else:
            kept = form.parts(value, read)
    except Wrong as wrong:
        found.faults += [Fault(wanted.name + w.at, w.code, w.message) for w in (wrong, *wrong.more)]
        return
    found.sent[wanted.name] = kept
    found.values[wanted.column] = kept
    for beside in wanted.beside:
        found.values[beside.column] = beside.of(value)


def _clear(found: Draft, wanted: Field, *, creating: bool) -> None:
    if wanted.required or not wanted.nullable:
        found.faults.append(Fault(wanted.name, "not_nullable", f"{wanted.name} cannot be null."))
        return
    found.sent[wanted.name] = None
    # Where a field always has a value, null means the value that it starts with.
    found.values[wanted.column] = wanted.default
    for beside in wanted.beside:
        found.values[beside.column] = None


def _complete(found: Draft, form: Form, sent: Mapping[str, Any]) -> None:
    for wanted in form.fields:
        if wanted.name not in sent and wanted.required:
            found.faults.append(Fault(wanted.name, "required", f"Send {wanted.name}."))
        elif wanted.default is not None:
            found.values.setdefault(wanted.column, wanted.default)


def refusal(faults: Sequence[Fault]) -> Refusal:
    """All faults in one refusal; its code is theirs when they agree on one that has a name."""
    codes = {fault.code for fault in faults}
    code = codes.pop() if codes <= {"invalid_reference"} or codes <= {"invalid_cnpj"} else ""
    first = faults[0]
    more = f" (and {len(faults) - 1} more, see details)" if len(faults) > 1 else ""
    return Refusal(
        code or "validation_error", f"{first.field}: {first.message}{more}", faults=faults
    )
