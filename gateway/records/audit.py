"""Describes who acts, checks scopes and ownership, and writes the audit log of what they did.

The log says who changed which record, and which of its fields. An entry is a row of its
transaction, so it exists exactly when the change does. It holds ids and names of fields, never a
value: gateway.domain.audit looks up the names of people when it reads. A write that follows from
another, such as a cascade, has no entry of its own.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from gateway.records.errors import Refusal
from gateway.records.resource import Form
from outbox.database.transaction import Insert, Tx
from outbox.events import cause

Scope = Literal["read", "write"]
Via = Literal["api_key", "bearer", "session", "storefront", "system"]
Cause = Literal[
    "command", "connection", "customer", "erasure", "expiry", "import", "mail", "payment"
]
"""Why the system acts: a command on the server, an app that its owner has allowed, the customer of
a document by its link, the erasure of a person, the end of a time, an import, a link in a mail, a
payment that its provider reported."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller that acts on the records of `owner_id`.

    `via` names the credential: an account's API key, token or console session, a visitor of a
    store, or the system itself. `zone` is the owner's time zone.
    """

    owner_id: str
    via: Via
    scopes: frozenset[Scope] = frozenset({"read", "write"})
    key_id: str | None = None
    zone: str = "UTC"
    store_id: str | None = None
    customer_id: str | None = None
    """The customer who is signed in to the store; None for a visitor."""
    resources: frozenset[str] | None = None
    """What of the REST API the key is for, such as `contacts`; None for all."""
    cause: Cause = "command"
    """Why the system acts; for no other `via`."""

    def must(self, scope: Scope) -> None:
        """Raise forbidden when the credential lacks `scope`."""
        if scope not in self.scopes:
            raise Refusal(
                "forbidden", f"This API key lacks the scope {scope!r}; use a key with this scope."
            )


def must_own(actor: Actor, owner_id: str, noun: str) -> None:
    """Raise forbidden when another account owns the record."""
    if actor.owner_id != owner_id:
        raise Refusal("forbidden", f"This {noun} belongs to another user.")


Kind = Literal["account", "api_key", "token", "customer", "visitor", "system"]
"""Who acts: an account in the console, by its API key or by its token; a customer or a visitor of a
store; the system."""
KINDS: tuple[Kind, ...] = get_args(Kind)
Action = Literal[
    "created", "updated", "deleted", "erased", "exported", "imported",
    "activated", "paused", "sent", "revoked", "replayed", "hastened", "canceled", "tested",
    "signed_in", "signed_out",
]  # fmt: skip
ACTIONS: tuple[Action, ...] = get_args(Action)

INSERT = Insert(
    "audit",
    ("owner_id", "id", "actor", "actor_id", "action", "resource", "record_id", "fields",
     "request_id"),
    referred=False,
)  # fmt: skip
# A statement of its own, so that other changes need not write its column.
INSERT_OF_CLIENT = Insert("audit", (*INSERT.columns, "client"), referred=False)

agent: ContextVar[str | None] = ContextVar("agent", default=None)
"""The name of the MCP client of a request; None for other requests."""


def record(
    tx: Tx,
    actor: Actor,
    action: Action,
    resource: str,
    record_id: str | None,
    fields: Iterable[str] = (),
    owner_id: str | None = None,
) -> None:
    """Note in the transaction of a change what `actor` did.

    `resource` is the noun of a resource, or a word like it (`webhook`, `key`, `account`). `fields`
    are the JSON names of the changed ones; a create and a delete concern all. Never pass a value.
    `owner_id` is whose log it is, where that is not the actor's owner.
    """
    kind, actor_id = who(actor)
    client = agent.get()
    row = (
        owner_id or actor.owner_id, _new_id(tx), kind, actor_id, action, resource, record_id,
        ",".join(fields), cause.get().request_id,
    )  # fmt: skip
    if client is None:
        tx.later(INSERT, row)
    else:
        tx.later(INSERT_OF_CLIENT, (*row, client))


def _new_id(tx: Tx) -> str:
    """Return an id that begins with the time in microseconds, so that entries keep their order."""
    made = tx.new_id()
    return f"{made[:12]}{tx.now % 1000:03x}{made[15:]}"


def time_of(entry_id: str) -> int:
    """Return the time of an entry, in microseconds UTC."""
    return int(entry_id[:12], 16) * 1000 + int(entry_id[12:15], 16)


def who(actor: Actor) -> tuple[Kind, str | None]:
    """Return the kind of an actor and its id: of a visitor the store, of the system its cause.

    A token has no id, so that its account is named.
    """
    match actor.via:
        case "api_key":
            return "api_key", actor.key_id
        case "bearer":
            return "token", actor.owner_id
        case "session":
            return "account", actor.owner_id
        case "storefront" if actor.customer_id is not None:
            return "customer", actor.customer_id
        case "storefront":
            return "visitor", actor.store_id
        case "system":
            return "system", actor.cause


def fields_of(form: Form, columns: Iterable[str]) -> list[str]:
    """Return the names of the fields with these columns; other columns are internal."""
    names = _names(form)
    return list(dict.fromkeys(names[column] for column in columns if column in names))


@lru_cache(maxsize=64)
def _names(form: Form) -> Mapping[str, str]:
    beside = {b.column: f.name for f in form.fields for b in f.beside}
    return beside | {f.column: f.name for f in form.fields}
