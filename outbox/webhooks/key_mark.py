"""Whether a key ring belongs to a database: a text that the ring has sealed is stored in it.

The mark is made when a ring first meets the database. A database of an older release has none:
then the stored secrets of webhooks decide. The rotation of keys seals the mark again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

import structlog

from outbox.database.transaction import Database, Row, Tx
from outbox.errors import CannotStart
from outbox.webhooks import signing_keys
from outbox.webhooks.secrets import ID_BYTES, KeyRing, SealBroken

MIGRATION = 13
"""The migration of the engine that made the place of the mark."""
PLACE = "outbox_state"
TEXT = b"the keys of this database"
SEALED = ("secret", "staged_secret", "old_secret", "headers", "certificate", "oauth2")
"""The sealed columns of `webhooks`."""

MARK = "select key_mark from outbox_state"
# When two nodes mark a new database at once, the first mark stays.
SET = "update outbox_state set key_mark = $1 where key_mark is null"
RESEAL = "update outbox_state set key_mark = $1 where key_mark = $2"
# Two values of each key, because one of them may be damaged.
SAMPLES = " union ".join(
    f"select {end}(id) as id from webhooks group by substr(secret, 1, {ID_BYTES})"
    for end in ("min", "max")
)
STORED = "select secret from webhooks where id = $1"
# A value starts with the id of its key.
NEEDED = "select substr({0}, 1, {1}) as key from webhooks where {0} is not null"

Query = Callable[..., Awaitable[Sequence[Row]]]
"""Runs a statement on a transaction or on a snapshot."""

log = structlog.get_logger("outbox")


async def objection(query: Query, ring: KeyRing, *, marked: bool = True) -> str | None:
    """Return why the ring does not belong to the database; None when it does.

    `marked`: the schema has a place for the mark. Any ring belongs to a database without secrets.
    """
    mark = await _mark(query) if marked else None
    fault = None
    if mark is not None:
        fault = _fault(ring, mark, PLACE)
        if fault is None or mark[:ID_BYTES].hex() not in ring.key_ids:
            return fault
        # The mark is damaged, or this key is another one with the same id: the secrets decide.
    for row in await query(SAMPLES):
        [webhook] = await query(STORED, row["id"])
        row_fault = _fault(ring, bytes(webhook["secret"]), row["id"])
        if row_fault is None:
            return None
        fault = fault or row_fault
    return fault


async def objection_in(tx: Tx, ring: KeyRing) -> str | None:
    """Return the objection of a transaction's database."""
    return await objection(tx.all, ring)


async def needed(
    query: Query, *, marked: bool = True, sealed: Collection[str] = SEALED, signing: bool = True
) -> tuple[str, ...]:
    """Return the ids of the keys that encrypted what is stored.

    `sealed` are the sealed columns that the schema has; `signing`: it has signing keys.
    """
    statement = " union ".join(NEEDED.format(name, ID_BYTES) for name in sealed)
    keys = {bytes(row["key"]).hex() for row in await query(statement)}
    if signing:
        keys |= {bytes(row["key"]).hex() for row in await query(signing_keys.SEALED)}
    mark = await _mark(query) if marked else None
    if mark is not None:
        keys.add(mark[:ID_BYTES].hex())
    return tuple(sorted(keys))


async def must_belong(db: Database, ring: KeyRing, keys: str, url: str) -> None:
    """Raise CannotStart when the ring does not belong to the database; mark a new one.

    `keys` and `url` name both in the message.
    """
    fault, is_marked = await db.read(_judged, ring)
    if fault is None and not is_marked:
        await db.write(_set, ring)
        # Another node may have set it first.
        fault, _ = await db.read(_judged, ring)
    if fault is not None:
        raise CannotStart(refusal(keys, url, fault))


def refusal(keys: str, url: str, fault: str) -> str:
    """Return the line for keys that do not belong to the database at `url`."""
    return (
        f"{keys} does not belong to the database {url}: {fault}; put back the keys of this "
        "database, from their backup or from another node"
    )


async def tell_missing(db: Database, ring: KeyRing) -> None:
    """Log the keys that stored values need and the ring lacks."""
    ids = set(await db.read(_needed)) - set(ring.key_ids)
    if ids:
        log.error(
            "keys_missing",
            keys=sorted(ids),
            text="webhooks whose secrets these keys encrypted send nothing until they are back",
        )


async def reseal(tx: Tx, ring: KeyRing) -> None:
    """Seal the mark again with the newest key, if an older one of the ring did before."""
    mark = await _mark(tx.all)
    if mark is not None and ring.stale(mark):
        ring.open(mark, PLACE)
        await tx.run(RESEAL, ring.seal(TEXT, PLACE), mark)


async def stale(tx: Tx, ring: KeyRing) -> bool:
    """Return whether an older key than the newest of the ring has sealed the mark."""
    mark = await _mark(tx.all)
    return mark is not None and ring.stale(mark)


async def replace(tx: Tx, ring: KeyRing) -> None:
    """Let the ring belong to the database from now on, whatever it cannot decrypt there."""
    await tx.run("update outbox_state set key_mark = $1", ring.seal(TEXT, PLACE))


async def _judged(tx: Tx, ring: KeyRing) -> tuple[str | None, bool]:
    """Return the objection, and whether the database has a mark."""
    return await objection(tx.all, ring), await _mark(tx.all) is not None


async def _set(tx: Tx, ring: KeyRing) -> None:
    """Mark a database without a mark."""
    await tx.run(SET, ring.seal(TEXT, PLACE))


async def _needed(tx: Tx) -> tuple[str, ...]:
    return await needed(tx.all)


async def _mark(query: Query) -> bytes | None:
    [row] = await query(MARK)
    return None if row["key_mark"] is None else bytes(row["key_mark"])


def _fault(ring: KeyRing, sealed: bytes, row_id: str) -> str | None:
    key_id = sealed[:ID_BYTES].hex()
    if key_id not in ring.key_ids:
        return f"its secrets are encrypted with the key {key_id}, which is missing there"
    try:
        ring.open(sealed, row_id)
    except SealBroken:
        return f"its secrets are encrypted with another key of the name {key_id}"
    return None
