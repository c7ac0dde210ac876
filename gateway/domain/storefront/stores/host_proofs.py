"""Proves by DNS that the hostnames of stores are their owners': a TXT record names the account.

A store answers at a hostname once its record was found, and until it was missing for a week. An
error of the name servers says nothing about the record. The longer a hostname lacks its record, the
more rarely it is looked for, and after two weeks no more, until somebody asks for it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from gateway.domain.storefront.stores import stores
from gateway.records import actions, audit
from gateway.records.audit import Actor
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, MINUTE

LABEL = "_carteiro"
"""Before the hostname, so that the record stands beside an alias record (CNAME) of it."""
PATIENCE = 7 * DAY
"""How long a hostname lasts whose record is missing."""
AGAIN = DAY
SOON = 5 * MINUTE
PART = 8
"""A hostname without a proof is looked for again after this part of its time without one, but not
before SOON, and not later than AGAIN."""
ENDS = 14 * DAY
AT_ONCE = 20
CHOICE = 500
"""Due hostnames from which the next ones are chosen, in turn by account."""
MISSING, ERROR = "missing", "error"
State = Literal["pending", "missing", "error", "verified", "failing", "expired"]
_DUE = """
select h.value, s.owner_id from store_hosts h join stores s on s.id = h.record_id
where h.due_at <= $1 order by h.due_at, h.value limit $2
"""
_LOOKED = """
update store_hosts set asked_at = $2, due_at = $3, lacks_since = $4, proven_at = $5, fault = $6
where value = $1
"""
_ONE = "select record_id, proven_at, lacks_since from store_hosts where value = $1"
_OF_STORE = """
select value, proven_at, asked_at, due_at, fault from store_hosts where record_id = $1
order by value
"""
_AGAIN = """
update store_hosts set lacks_since = 0,
  due_at = case when asked_at + $2 > $3 then asked_at + $2 else $3 end
where record_id = $1 and proven_at is null
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
    lines: dict[str, list[str]] = defaultdict(list)
    for row in await tx.all(_DUE, tx.now, CHOICE):
        lines[row["owner_id"]].append(row["value"])
    turns = [
        (number, hostname, owner)
        for owner, line in lines.items()
        for number, hostname in enumerate(line)
    ]
    turns.sort(key=lambda turn: turn[0])
    return [(hostname, owner) for _, hostname, owner in turns[:AT_ONCE]]


async def ask_again(tx: Tx, actor: Actor, store_id: str) -> None:
    """Look again for the hostnames of a store that have no proof, soon after their last look.

    Raises not_found, forbidden.
    """
    store = await actions.own(tx, actor, stores.STORES, store_id, "write")
    await tx.run(_AGAIN, store.id, SOON, tx.now)
    audit.record(tx, actor, "hastened", stores.STORES.noun, store.id, ("hostname",))


async def note(tx: Tx, results: Sequence[tuple[str, str | None]]) -> None:
    """Note what was found: each hostname with its fault, None for a proof."""
    now = tx.now
    for hostname, fault in results:
        row = await tx.one(_ONE, hostname)
        if row is None:
            continue
        proven_at, since = (now, 0) if fault is None else (row["proven_at"], row["lacks_since"])
        if fault == MISSING and proven_at is not None and proven_at < now - PATIENCE:
            proven_at = None
        if proven_at is None:
            since = since or now
        due_at = now + AGAIN if proven_at is not None else next_look(now, since)
        await tx.run(_LOOKED, hostname, now, due_at, since, proven_at, fault)
        tx.changed.add(stores.name_of(row["record_id"]))


def next_look(now: int, since: int) -> int | None:
    """Return when a hostname is looked for again that lacks its proof since then; None: never."""
    lacks = now - since
    return None if lacks >= ENDS else now + min(AGAIN, max(SOON, lacks // PART))


def _state(row: Row) -> State:
    if row["proven_at"] is not None:
        return "verified" if row["fault"] is None else "failing"
    if row["due_at"] is None:
        return "expired"
    if row["fault"] is None:
        return "pending"
    return "error" if row["fault"] == ERROR else "missing"
