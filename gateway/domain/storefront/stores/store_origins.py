"""Lists the origins that active stores allow, besides their own hostnames.

The table finds one origin among those of all stores. An inactive store has no rows in it, so that
a look-up reads past none of them.
"""

import hashlib

from msgspec import json

from gateway.records.record import Record
from gateway.records.values import hostnames
from outbox.database.sql import insert
from outbox.database.transaction import Tx

CHANGED = "origin"
"""What Tx.changed says of an origin that a store lists, or lists no longer, before its digest."""
_DIGEST_BYTES = 12
"""As long as an id: many names of changes fit into one signal between processes."""
_DROP = "delete from store_origins where record_id = $1"
# From one owner to the next, until one is enabled: a disabled one may have any number of stores.
# Scalar queries, because PostgreSQL could join all users.
_ENABLED = "(select 1 from users u where u.id = o.owner_id and u.disabled_at is null)"
_ALLOWED = f"""
with recursive o(owner_id) as (
  select min(owner_id) from store_origins where value = $1
  union all
  select (select min(s.owner_id) from store_origins s
    where s.value = $1 and s.owner_id > o.owner_id)
  from o where o.owner_id is not null and {_ENABLED} is null
)
select 1 as found from o where o.owner_id is not null and {_ENABLED} is not null
"""


def of(store: Record) -> frozenset[str]:
    """Return the origins that a store allows, besides its own hostnames."""
    return frozenset(json.decode(store["allowed_origins"]))


def listed(store: Record) -> frozenset[str]:
    """Return the origins that the table has of a store."""
    return of(store) if store["active"] else frozenset()


async def create(tx: Tx, created: Record) -> None:
    """List what a new store allows."""
    await _list(tx, created)
    tx.changed.update(map(name_of, listed(created)))


async def change(tx: Tx, before: Record, after: Record) -> None:
    """List what a store allows now, in place of what the table has of it."""
    had, has = listed(before), listed(after)
    if had or has:
        # All of its rows, because a node of the version before writes stores without them.
        await tx.run(_DROP, after.id)
        await _list(tx, after)
        tx.changed.update(map(name_of, had ^ has))


def remove(tx: Tx, before: Record) -> None:
    """Announce what a deleted store allowed; the rows have gone with it."""
    tx.changed.update(map(name_of, listed(before)))


async def is_allowed(tx: Tx, origin: str) -> bool:
    """Return whether an active store of an enabled account allows an origin."""
    return await tx.one(_ALLOWED, origin) is not None


def may_be_one(text: str) -> bool:
    """Return whether a store could allow a text as its origin."""
    # A driver may refuse other characters as a parameter.
    is_plain = text.isascii() and text.isprintable() and len(text) <= hostnames.LONGEST_ORIGIN
    return is_plain and text.startswith(("https://", "http://"))


def name_of(origin: str) -> str:
    """Return the name of an origin in Tx.changed."""
    digest = hashlib.blake2b(origin.encode(), digest_size=_DIGEST_BYTES)
    return f"{CHANGED}:{digest.hexdigest()}"


async def _list(tx: Tx, store: Record) -> None:
    if origins := sorted(listed(store)):
        rows = [(origin, store.owner_id, store.id) for origin in origins]
        await insert(tx, "store_origins", ("value", "owner_id", "record_id"), rows)
