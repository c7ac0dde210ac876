"""Proves by DNS that the hostnames of stores are their owners': a TXT record names the account.

A store answers at a hostname once its record was found, and until it was missing for a week. An
error of the name servers says nothing about the record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from gateway.domain.storefront.stores import stores
from gateway.records import actions
from gateway.records.access import Actor
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, MINUTE

LABEL = "_carteiro"
"""Before the hostname, so that the record stands beside an alias record (CNAME) of it."""
PATIENCE = 7 * DAY
"""How long a hostname lasts whose record is missing."""
AGAIN = DAY
SOON = 5 * MINUTE
"""After this time a hostname without a proof is looked for again."""
AT_ONCE = 20
MISSING, ERROR = "missing", "error"
State = Literal["pending", "missing", "error", "verified", "failing"]
_DUE = """
select h.value, s.owner_id from store_hosts h join stores s on s.id = h.record_id
where h.asked_at < $2 and (h.asked_at < $1 or h.proven_at is null)
order by h.asked_at, h.value limit $3
"""
_FOUND = """
update store_hosts set asked_at = $2, proven_at = $2, fault = null where value = $1
"""
_FAULT = """
update store_hosts set asked_at = $2, fault = $3,
  proven_at = case when $3 = 'missing' and proven_at < $4 then null else proven_at end
where value = $1
"""
_OF_STORE = """
select value, proven_at, asked_at, fault from store_hosts where record_id = $1 order by value
"""


@dataclass(frozen=True, slots=True)
class Proof:
    """A hostname of a store, and the record that proves it."""

    hostname: str
    state: State
    record: str
    value: str
    checked_at: int | None
    proven_at: int | None


def record_of(hostname: str) -> str:
    """Return the name of the TXT record of a hostname."""
    return f"{LABEL}.{hostname}"


def value_of(owner_id: str) -> str:
    """Return what the record says. It is no secret: only who has the domain can write it there."""
    return f"carteiro-account={blake2b(owner_id.encode(), digest_size=16).hexdigest()}"


async def of_store(tx: Tx, actor: Actor, store_id: str) -> Sequence[Proof]:
    """Return the proofs of a store of the actor. Raises not_found, forbidden."""
    store = await actions.own(tx, actor, stores.STORES, store_id, "read")
    rows = await tx.all(_OF_STORE, store.id)
    return [
        Proof(
            row["value"], _state(row), record_of(row["value"]), value_of(store.owner_id),
            row["asked_at"] or None, row["proven_at"],
        )
        for row in rows
    ]  # fmt: skip


async def due(tx: Tx) -> Sequence[tuple[str, str]]:
    """Return hostnames to look for now, each with its owner."""
    rows = await tx.all(_DUE, tx.now - AGAIN, tx.now - SOON, AT_ONCE)
    return [(row["value"], row["owner_id"]) for row in rows]


async def note(tx: Tx, found: Sequence[tuple[str, str | None]]) -> None:
    """Note what was found: each hostname with its fault, None for a proof."""
    for hostname, fault in found:
        if fault is None:
            await tx.run(_FOUND, hostname, tx.now)
        else:
            await tx.run(_FAULT, hostname, tx.now, fault, tx.now - PATIENCE)
    tx.changed.add(stores.CHANGED)


def _state(row: Row) -> State:
    if row["proven_at"] is not None:
        return "verified" if row["fault"] is None else "failing"
    if row["fault"] is None:
        return "pending"
    return "error" if row["fault"] == ERROR else "missing"
