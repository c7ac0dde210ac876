"""Which columns are encrypted with the key ring, and the column that each value is bound to."""

from collections.abc import Mapping
from typing import Final

from outbox.database.transaction import Tx
from outbox.webhooks import key_mark
from outbox.webhooks.resealing import Resealed, SealedTable, sweep
from outbox.webhooks.secrets import ID_BYTES, KeyRing

SEALED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "webhooks": ("id", key_mark.SEALED),
    "sessions": ("id", ("reveal",)),
    "payment_secrets": ("store_id", ("secret", "staged_secret", "old_secret")),
    "two_factors": ("owner_id", ("secret",)),
    "checkouts": ("order_id", ("sealed",)),
}
"""The sealed columns of the owners' tables."""
LASTING: Final = ("payment_secrets", "two_factors")
"""Tables whose values outlive a key; the webhooks have a rotation of their own."""
# A value starts with the id of its key.
_KEYS = f"select substr(secret, 1, {ID_BYTES}) as key, count(*) as n from {{0}} group by key"
_IN_USE = {
    "payment_secrets": "payment_secrets",
    # Who has not confirmed it signs in with the password alone.
    "two_factors": "two_factors where confirmed_at is not null",
}


async def reseal(tx: Tx, table: str, ring: KeyRing, after: str, limit: int) -> Resealed:
    """Encrypt again what older keys encrypted in the next `limit` rows of a LASTING table."""
    bound, columns = SEALED[table]
    return await sweep(tx, SealedTable(table, bound, columns), ring, after, limit)


async def unreadable(tx: Tx, table: str, ring: KeyRing) -> int:
    """Return how many rows of a LASTING table are in use and need a key that the ring lacks."""
    found = await tx.all(_KEYS.format(_IN_USE[table]))
    return sum(row["n"] for row in found if bytes(row["key"]).hex() not in ring.key_ids)
