"""The Ed25519 keys of the installation: make, replace, end and list them.

They sign `v1a` of deliveries for webhooks that want it, and checkpoints of the log. Private keys
are encrypted with the key ring, each bound to the id of its key. Claims load them with the webhook,
so that all nodes sign by the same keys from the same commit on. A replaced key signs beside the
current one for OVERLAP: receivers that fetched the public keys before can verify meanwhile. Then a
duty deletes its private half; the public one stays, for checkpoints that it has signed.
"""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outbox.database import locks, times
from outbox.database.transaction import Tx
from outbox.errors import OutboxError
from outbox.sending import ed25519
from outbox.webhooks.secret_rotation import OVERLAP
from outbox.webhooks.secrets import ID_BYTES, KeyRing, SealBroken

MOST = 3
"""The maximum number of keys that sign at the same time: each costs every such request."""

SEALED = f"""
select substr(private_key, 1, {ID_BYTES}) as key from signing_keys where private_key is not null
"""

# One text for all keys, so that a webhook that wants none pays nothing: id and hex of the encrypted
# private key, the current key first.
FOR_WEBHOOK = """
case when w.ed25519 then coalesce((
  select /*sqlite group_concat(line, ' ')*/ /*postgres string_agg(line, ' ')*/ from (
    select id || ':' || /*sqlite hex(private_key)*/ /*postgres encode(private_key, 'hex')*/ as line
    from signing_keys where private_key is not null
    order by ends_at is not null, created_at desc) as keys), '') end as signing_keys
"""

LIST = """
select id, public_key, private_key, created_at, ends_at from signing_keys
order by ends_at is not null, created_at desc, id
"""
# The rotations of two operators wait for each other.
ONE_AT_A_TIME = locks.held(locks.SIGNING_KEYS)
# Of two nodes that make the first key at once, one does nothing.
INSERT = """
insert into signing_keys (id, public_key, private_key, created_at) values ($1, $2, $3, $4)
on conflict do nothing
"""
REPLACE = "update signing_keys set ends_at = $1 where ends_at is null"
END = """
update signing_keys set private_key = null,
  ends_at = case when ends_at > $1 then $1 else ends_at end
where private_key is not null and ends_at is not null
"""
EXPIRE = """
update signing_keys set private_key = null where id in (
  select id from signing_keys where private_key is not null and ends_at <= $1 limit $2)
"""
LOSE = """
update signing_keys set private_key = null, ends_at = coalesce(ends_at, $2) where id = $1
"""


class TooManyKeys(OutboxError):
    """So many keys sign already that another one has to wait for the end of one of them."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key of the installation; times are microseconds UTC.

    `sealed` is its encrypted private half, None after its end; `ends_at` is None for the current
    one.
    """

    id: str
    public: bytes
    sealed: bytes | None
    created_at: int
    ends_at: int | None

    @property
    def signs(self) -> bool:
        return self.sealed is not None

    def opened(self, ring: KeyRing) -> Ed25519PrivateKey:
        """Return the private key. Raise SealBroken."""
        if self.sealed is None:
            raise SealBroken("its private half is deleted")
        return opened(self.sealed, self.id, ring)


def opened(sealed: bytes, key_id: str, ring: KeyRing) -> Ed25519PrivateKey:
    """Decrypt the private key with this id. Raise SealBroken."""
    try:
        return ed25519.private_key(ring.open(sealed, key_id))
    except ValueError:
        raise SealBroken("it is damaged") from None


def of_endpoint(text: str, ring: KeyRing) -> tuple[Ed25519PrivateKey, ...]:
    """Return the private keys in a text of FOR_WEBHOOK. Raise SealBroken."""
    keys = []
    for line in text.split():
        key_id, _, sealed = line.partition(":")
        keys.append(opened(bytes.fromhex(sealed), key_id, ring))
    if not keys:
        raise SealBroken("there is none")
    return tuple(keys)


async def listed(tx: Tx) -> list[SigningKey]:
    """Return all keys, the current one first and ended ones last."""
    return [
        SigningKey(
            row["id"],
            bytes(row["public_key"]),
            None if row["private_key"] is None else bytes(row["private_key"]),
            row["created_at"],
            row["ends_at"],
        )
        for row in await tx.all(LIST)
    ]


async def current(tx: Tx) -> SigningKey | None:
    """Return the current key; None before the first start of a server made one."""
    keys = await listed(tx)
    return keys[0] if keys and keys[0].ends_at is None else None


async def ensure(tx: Tx, ring: KeyRing, seed: bytes) -> None:
    """Make the first key of the random bytes of `seed`, unless there is one."""
    if await current(tx) is None:
        await _add(tx, ring, seed)


async def rotate(tx: Tx, ring: KeyRing, seed: bytes, *, at_once: bool = False) -> SigningKey:
    """Make a new current key; the one before signs for OVERLAP more, or ends `at_once`.

    Raise TooManyKeys.
    """
    await tx.one(ONE_AT_A_TIME)
    signing = sum(key.signs for key in await listed(tx))
    if signing >= MOST and not at_once:
        raise TooManyKeys(
            f"{signing} keys sign already; rotate again when one of them has ended, or end them "
            "with --at-once"
        )
    await tx.run(REPLACE, tx.now if at_once else tx.now + OVERLAP)
    if at_once:
        await tx.run(END, tx.now)
    await _add(tx, ring, seed)
    made = await current(tx)
    assert made is not None, "it was inserted above"
    return made


async def expire(tx: Tx, limit: int) -> int:
    """Delete the private halves of up to `limit` keys whose overlap is over; return how many."""
    return await tx.run(EXPIRE, await times.earlier(tx), limit)


async def give_up(tx: Tx, ring: KeyRing, seed: bytes) -> int:
    """End keys that the ring cannot decrypt, and make a new one if none is left; return how many.

    Their public halves stay.
    """
    lost = 0
    for key in await listed(tx):
        try:
            if key.signs:
                key.opened(ring)
        except SealBroken:
            lost += await tx.run(LOSE, key.id, tx.now)
    await ensure(tx, ring, seed)
    return lost


async def _add(tx: Tx, ring: KeyRing, seed: bytes) -> None:
    public = ed25519.public_of(seed)
    key_id = ed25519.key_id(public)
    await tx.run(INSERT, key_id, public, ring.seal(seed, key_id), tx.now)
