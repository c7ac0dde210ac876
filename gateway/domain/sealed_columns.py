"""Which columns are encrypted with the key ring, and the column that each value is bound to."""

from collections.abc import Mapping
from typing import Final

from outbox.database.transaction import Tx
from outbox.webhooks import key_mark
from outbox.webhooks.resealing import Resealed, SealedTable, sweep
from outbox.webhooks.secrets import KeyRing

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


async def reseal(tx: Tx, table: str, ring: KeyRing, after: str, limit: int) -> Resealed:
    """Encrypt again what older keys encrypted in the next `limit` rows of a LASTING table."""
    bound, columns = SEALED[table]
    return await sweep(tx, SealedTable(table, bound, columns), ring, after, limit)
