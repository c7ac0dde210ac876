"""A body against a declaration: the values to be stored, or all of its faults at once."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import Fault, Refusal
from gateway.resource import Field, Resource, Wrong
from gateway.strictjson import InvalidJson, decode

_HEADER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
IGNORED_SHOWN = 10


@dataclass(slots=True)
class Draft:
    """What a body asks for. A body that cannot be read at all is `unreadable`.

    The faults are kept, not raised: whether the record is there, and whose it is, is told first.
    """

    values: dict[str, Any] = field(default_factory=dict)
    """Stored values by column, only of what was sent (and the defaults of a create)."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The stored value of each field that was sent, by its JSON name."""
    faults: list[Fault] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    unreadable: Refusal | None = None

    def must_hold(self, more: Sequence[Fault] = ()) -> None:
        """Raise the refusal that names every fault, `more` included."""
        if self.unreadable is not None:
            raise self.unreadable
        if self.faults or more:
            raise refusal([*self.faults, *more])

    @property
    def ignored_header(self) -> str:
        """The value of X-Ignored-Fields; nothing of a client's text reaches it unchecked."""
        names = [n if _HEADER_NAME.fullmatch(n) else "…" for n in self.ignored[:IGNORED_SHOWN]]
        return ", ".join(names + ["…"] * (len(self.ignored) > IGNORED_SHOWN))


def draft(
    resource: Resource, body: bytes, *, creating: bool = False, takes: Sequence[str] | None = None
) -> Draft:
    """Read the bytes of a body; see `check`."""
    try:
        sent = decode(body)
    except InvalidJson as error:
        return Draft(unreadable=Refusal("invalid_json", str(error)))
    return check(resource, sent, creating=creating, takes=takes)


def check(
    resource: Resource, sent: Any, *, creating: bool = False, takes: Sequence[str] | None = None
) -> Draft:
    """Check a decoded body: create wants what is required, an update takes what is sent.

    With `takes` it takes these fields alone, whoever writes them otherwise: the body of a verb.
    """
    if not isinstance(sent, dict):
        return Draft(unreadable=Refusal("validation_error", "Send a JSON object as the body."))
    found = Draft()
    named = resource.named
    for name, value in sent.items():
        wanted = named.get(name)
        if wanted is None or not _is_open(wanted, creating, takes):
            found.ignored.append(name)
        elif value is None:
            _clear(found, wanted, creating=creating)
        else:
            _take(found, wanted, value)
    if creating:
        _complete(found, resource, sent)
    return found


def _is_open(wanted: Field, creating: bool, takes: Sequence[str] | None) -> bool:
    if takes is not None:
        return wanted.name in takes
    return wanted.on_create if creating else wanted.on_update


def _take(found: Draft, wanted: Field, value: Any) -> None:
    try:
        kept = wanted.format.parse(value)
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


def _complete(found: Draft, resource: Resource, sent: Mapping[str, Any]) -> None:
    for wanted in resource.fields:
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
