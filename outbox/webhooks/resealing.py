"""Encrypt the stored secrets of webhooks and the signing keys again, with the newest key.

The mark of the key ring comes last: see outbox.webhooks.key_mark.
"""

from dataclasses import dataclass

from outbox.database.transaction import Tx
from outbox.webhooks import key_mark, signing_keys
from outbox.webhooks.secrets import ID_BYTES, KeyRing, SealBroken

COLUMNS = key_mark.SEALED

PAGE = f"""
select id, {", ".join(COLUMNS)} from webhooks
where id > $1 order by id limit $2
"""

# A value that was replaced meanwhile stays: it is encrypted with a newer key already.
RESEAL = {
    name: f"update webhooks set {name} = $2 where id = $1 and {name} = $3" for name in COLUMNS
}


# A value starts with the id of its key.
UNFINISHED = f"""
select 1 as found from webhooks
where {" or ".join(f"substr({name}, 1, {ID_BYTES}) <> $1" for name in COLUMNS)} limit 1
"""


@dataclass(frozen=True, slots=True)
class Resealed:
    """One page: the last id (None after the last page), and counts of values.

    `done` were encrypted again; `broken` no key opens.
    """

    last: str | None
    done: int
    broken: int


async def reseal(tx: Tx, ring: KeyRing, after: str, limit: int) -> Resealed:
    """Encrypt again what older keys encrypted in the next `limit` webhooks after the id `after`.

    The version of a webhook stays, because its secret does not change.
    """
    rows = await tx.all(PAGE, after, limit)
    done = broken = 0
    for row in rows:
        for name in COLUMNS:
            if row[name] is None or not ring.stale(sealed := bytes(row[name])):
                continue
            try:
                plain = ring.open(sealed, row["id"])
            except SealBroken:
                broken += 1
                continue
            done += await tx.run(RESEAL[name], row["id"], ring.seal(plain, row["id"]), sealed)
    if len(rows) == limit:
        return Resealed(rows[-1]["id"], done, broken)
    again, unreadable = await signing_keys.reseal(tx, ring)
    await key_mark.reseal(tx, ring)
    return Resealed(None, done + again, broken + unreadable)


async def unfinished(tx: Tx, ring: KeyRing) -> bool:
    """Return whether an older key than the newest of the ring encrypted a stored value."""
    if await key_mark.stale(tx, ring):
        return True
    keys = await signing_keys.listed(tx)
    if any(key.sealed is not None and ring.stale(key.sealed) for key in keys):
        return True
    return await tx.one(UNFINISHED, bytes.fromhex(ring.newest)) is not None
