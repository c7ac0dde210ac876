"""The secret that a store shares with the adapter of its payment provider, replaced in two steps.

The current one signs tokens of orders. Calls may be signed by it, by a staged one, and by a
replaced one for OVERLAP more, so that no call is refused while the adapter gets the new one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.storefront.stores.stores import STORES
from gateway.records import actions, audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from outbox.database import times
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.webhooks.secret_rotation import OVERLAP
from outbox.webhooks.secrets import KeyRing, SealBroken

AUDITED = "payment secret"
"""The word of the audit log for it; the id is that of the store."""
_FIND = """
select secret, staged_secret, old_secret, old_secret_until from payment_secrets where store_id = $1
"""
_STORE = """
select s.owner_id, u.timezone from stores s join users u on u.id = s.owner_id where s.id = $1
"""
_CREATE = """
insert into payment_secrets (store_id, secret) values ($1, $2) on conflict do nothing
"""
_REPLACE = "update payment_secrets set secret = $2 where store_id = $1 and secret = $3"
_STAGE = """
update payment_secrets set staged_secret = $2 where store_id = $1 and staged_secret is null
"""
_ACTIVATE = """
update payment_secrets set old_secret = secret, old_secret_until = $2, secret = staged_secret,
  staged_secret = null
where store_id = $1 and staged_secret is not null
"""
_CANCEL = """
update payment_secrets set staged_secret = null
where store_id = $1 and staged_secret is not null
"""
_EXPIRE = """
update payment_secrets set old_secret = null, old_secret_until = null
where store_id in (
  select store_id from payment_secrets where old_secret_until <= $1
  order by old_secret_until limit $2 /*postgres for update skip locked*/)
"""
_CURRENT = f"select store_id, secret from payment_secrets where store_id in {IDS}"


@dataclass(frozen=True, slots=True)
class SecretState:
    """How far a store is; `old_until`: the replaced secret is valid until then, if there is one."""

    exists: bool = False
    staged: bool = False
    old_until: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """The owner of a store, with the time zone and the valid secrets of the store."""

    owner_id: str
    zone: str
    secrets: Sequence[str]


async def standing(
    tx: Tx, actor: Actor, store_id: str, ring: KeyRing
) -> tuple[Record, SecretState]:
    """Return a store and how far its secret is. Raises not_found, forbidden."""
    store = await actions.read(tx, actor, STORES, store_id)
    row = await tx.one(_FIND, store.id)
    if row is None or opened(bytes(row["secret"]), store.id, ring) is None:
        return store, SecretState()
    until = row["old_secret_until"]
    return store, SecretState(
        exists=True,
        staged=row["staged_secret"] is not None,
        old_until=until if until is not None and until > tx.now else None,
    )


async def stage(tx: Tx, actor: Actor, store_id: str, secret: str, ring: KeyRing) -> bool:
    """Store a new secret: as the current one of a store without one, else staged.

    Return whether it is staged. Raises not_found, forbidden, conflict when one is staged already.
    """
    store = await actions.own(tx, actor, STORES, store_id, "write")
    sealed = ring.seal(secret.encode(), store.id)
    audit.record(tx, actor, "created", AUDITED, store.id)
    if await tx.run(_CREATE, store.id, sealed):
        return False
    row = await tx.one(_FIND, store.id)
    assert row is not None, "the insert found a row"
    current = bytes(row["secret"])
    if opened(current, store.id, ring) is None:
        # Its key is gone: nobody can use it any more.
        await tx.run(_REPLACE, store.id, sealed, current)
        return False
    if not await tx.run(_STAGE, store.id, sealed):
        raise Refusal(
            "conflict", "A new secret is already staged; activate it, or cancel it first."
        )
    return True


async def activate(tx: Tx, actor: Actor, store_id: str) -> None:
    """Make the staged secret the current one. Raises conflict when none is staged."""
    store = await actions.own(tx, actor, STORES, store_id, "write")
    if not await tx.run(_ACTIVATE, store.id, tx.now + OVERLAP):
        raise Refusal("conflict", "No new secret is staged; create a new one first.")
    audit.record(tx, actor, "activated", AUDITED, store.id)


async def cancel(tx: Tx, actor: Actor, store_id: str) -> None:
    """Delete the staged secret. Raises conflict when none is staged."""
    store = await actions.own(tx, actor, STORES, store_id, "write")
    if not await tx.run(_CANCEL, store.id):
        raise Refusal("conflict", "No new secret is staged; there is nothing to cancel.")
    audit.record(tx, actor, "canceled", AUDITED, store.id)


async def expire(tx: Tx, limit: int) -> int:
    """Delete up to `limit` replaced secrets whose time has passed; return how many."""
    return await tx.run(_EXPIRE, await times.earlier(tx), limit)


async def account_of(tx: Tx, store_id: str, ring: KeyRing) -> Account | None:
    """Return the account of a store with its valid secrets; None when there is no such store."""
    store = await tx.one(_STORE, store_id)
    if store is None:
        return None
    row = await tx.one(_FIND, store_id)
    valid: list[str | None] = []
    if row is not None:
        old = row["old_secret"] if tx.now < (row["old_secret_until"] or 0) else None
        sealed = (row["secret"], row["staged_secret"], old)
        valid = [opened(bytes(secret), store_id, ring) for secret in sealed if secret is not None]
    return Account(store["owner_id"], store["timezone"], [secret for secret in valid if secret])


async def current(tx: Tx, store_ids: Sequence[str]) -> Mapping[str, bytes]:
    """Return the current secrets of stores, encrypted, by the id of the store."""
    rows = await tx.all(_CURRENT, items(store_ids))
    return {row["store_id"]: bytes(row["secret"]) for row in rows}


def opened(sealed: bytes, store_id: str, ring: KeyRing) -> str | None:
    """Return a secret of a store, or None when no key decrypts it."""
    try:
        return ring.open(sealed, store_id).decode()
    except SealBroken:
        return None
