"""Checkpoints: signed notes of where the chains of attempts of an owner end.

A checkpoint is a compact JWS (RFC 7515) with EdDSA by the current key of the installation. Whoever
keeps it elsewhere can prove later, with the public key alone, that a chain was cut or computed
again: its digest at the noted place must still be the same. Each one has the digest of the owner's
checkpoint before it, so that they are a chain of their own. An owner with more than PART chains
gets several at a time. A part whose chains have not grown gets none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from outbox.database import locks, times
from outbox.database.index_plans import by_index
from outbox.database.moving_owners import is_here
from outbox.database.transaction import Row, Tx
from outbox.sending import ed25519
from outbox.webhooks import signing_keys
from outbox.webhooks.secrets import KeyRing, SealBroken

PART = 200
"""The maximum number of chains in a checkpoint."""
TYPE = "carteiro-checkpoint"

# The time of the last attempt tells `verify` whether retention may have deleted it.
ENDS = """
select webhook_id, place, digest, attempted_at from (
  select * from (
    select l.webhook_id, l.chain_place as place, l.chain_digest as digest,
      coalesce(w.last_attempt_at, w.created_at) as attempted_at
    from lanes l join webhooks w on w.id = l.webhook_id
    where w.owner_id = $1 and l.chain_place > 0 and l.webhook_id > $2
    order by l.webhook_id limit $3) as live
  union all
  select * from (
    select webhook_id, place, digest, attempted_at from chain_ends
    where owner_id = $1 and webhook_id > $2 order by webhook_id limit $3) as deleted
) as both_kinds order by webhook_id limit $3
"""
PREVIOUS = """
select ends from checkpoints where owner_id = $1 and first_webhook = $2
order by number desc limit 1
"""
LAST = """
select number, body, created_at from checkpoints where owner_id = $1 order by number desc limit 1
"""
# Checkpoints of one owner wait for each other: each has the digest of the one before.
ONE_AT_A_TIME = locks.held_of(locks.CHECKPOINTS_OF)
INSERT = """
insert into checkpoints
  (owner_id, number, created_at, key_id, webhooks, first_webhook, ends, body)
values ($1, $2, $3, $4, $5, $6, $7, $8)
"""
PAGE = """
select number, created_at, key_id, webhooks, body from checkpoints
where owner_id = $1 and number < $2 order by number desc limit $3
"""
OWNERS = f"""
select owner_id from (
  select distinct owner_id from webhooks where owner_id > $1 and {is_here("webhooks.owner_id")}
  order by owner_id limit $2) as live
union
select owner_id from (
  select distinct owner_id from chain_ends where owner_id > $1 and {is_here("chain_ends.owner_id")}
  order by owner_id limit $2) as ended
order by owner_id limit $2
"""
# The last one of each owner stays, because the next one continues it.
PURGE = """
delete from checkpoints where (owner_id, number) in (
  select owner_id, number from checkpoints c where created_at < $1 and number < (
    select max(l.number) from checkpoints l where l.owner_id = c.owner_id)
  order by created_at limit $2)
"""
NEWEST = 2**62


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A stored checkpoint; `body` is the JWS, `webhooks` the number of its chains."""

    number: int
    created_at: int
    key_id: str
    webhooks: int
    body: str


@dataclass(frozen=True, slots=True)
class Part:
    """Up to PART chains of an owner: the id of the last one, and whether any has grown since."""

    last: str | None
    """None when no further part follows."""
    grown: bool


class TooSoon(Exception):
    """The owner's last checkpoint is too young; one can be made after `wait` microseconds."""

    def __init__(self, wait: int) -> None:
        super().__init__(wait)
        self.wait = wait


async def part(tx: Tx, owner_id: str, after: str) -> Part:
    """Look at the chains of the webhooks with ids after `after`."""
    ends = await _ends(tx, owner_id, after)
    return Part(_last(ends), await _grown(tx, owner_id, ends))


async def make(
    tx: Tx, owner_id: str, after: str, ring: KeyRing, seed: bytes, *, apart: int = 0
) -> Checkpoint | None:
    """Make the checkpoint of the chains after `after`; None when none has grown.

    `seed` makes the first key of the installation when there is none. Raise SealBroken, and TooSoon
    when the owner's last one is less than `apart` microseconds old.
    """
    await tx.one(ONE_AT_A_TIME, owner_id)
    ends = await _ends(tx, owner_id, after)
    if not await _grown(tx, owner_id, ends):
        return None
    last = await tx.one(LAST, owner_id)
    # This transaction may have begun before the last one was made, or the clock was set back.
    age = apart if last is None else tx.now - int(last["created_at"])
    if abs(age) < apart:
        raise TooSoon(apart - max(age, 0))
    await signing_keys.ensure(tx, ring, seed)
    key = await signing_keys.current(tx)
    if key is None:
        raise SealBroken("there is no signing key")
    number = 1 if last is None else int(last["number"]) + 1
    claims = {
        "owner": owner_id,
        "number": number,
        "at": tx.now,
        "previous": None if last is None else digest_of(last["body"]),
        "webhooks": [
            {
                "id": end["webhook_id"],
                "place": end["place"],
                "digest": end["digest"],
                "at": end["attempted_at"],
            }
            for end in ends
        ],
    }
    header = {"alg": "EdDSA", "kid": key.id, "typ": TYPE}
    signed = ".".join(ed25519.base64url(msgspec.json.encode(part)) for part in (header, claims))
    signature = key.opened(ring).sign(signed.encode())
    checkpoint = Checkpoint(
        number, tx.now, key.id, len(ends), f"{signed}.{ed25519.base64url(signature)}"
    )
    await tx.run(
        INSERT, owner_id, number, tx.now, key.id, len(ends), ends[0]["webhook_id"],
        _digest(ends), checkpoint.body,
    )  # fmt: skip
    return checkpoint


async def page(tx: Tx, owner_id: str, before: int, limit: int) -> list[Checkpoint]:
    """Return up to `limit` checkpoints of an owner with a number below `before`, newest first."""
    return [
        Checkpoint(row["number"], row["created_at"], row["key_id"], row["webhooks"], row["body"])
        for row in await tx.all(PAGE, owner_id, before, limit)
    ]


async def owners(tx: Tx, after: str, limit: int) -> list[str]:
    """Return up to `limit` owners of webhooks, in order, with ids after `after`."""
    await by_index(tx)
    return [row["owner_id"] for row in await tx.all(OWNERS, after, limit)]


async def purge(tx: Tx, age: int, limit: int) -> int:
    """Delete up to `limit` checkpoints older than `age` microseconds; return how many."""
    return await tx.run(PURGE, await times.earlier(tx) - age, limit)


def digest_of(body: str) -> str:
    """Return the digest by which the next checkpoint names this one: SHA-256 of the JWS, hex."""
    return hashlib.sha256(body.encode()).hexdigest()


async def _ends(tx: Tx, owner_id: str, after: str) -> Sequence[Row]:
    return await tx.all(ENDS, owner_id, after, PART)


async def _grown(tx: Tx, owner_id: str, ends: Sequence[Row]) -> bool:
    if not ends:
        return False
    previous = await tx.one(PREVIOUS, owner_id, ends[0]["webhook_id"])
    return previous is None or bytes(previous["ends"]) != _digest(ends)


def _last(ends: Sequence[Row]) -> str | None:
    return str(ends[-1]["webhook_id"]) if len(ends) == PART else None


def _digest(ends: Sequence[Row]) -> bytes:
    places = [(end["webhook_id"], end["place"], end["digest"]) for end in ends]
    return hashlib.sha256(msgspec.json.encode(places)).digest()
