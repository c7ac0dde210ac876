"""Which columns are encrypted with the key ring, and the column that each value is bound to."""

from collections.abc import Mapping
from typing import Final

from outbox.database.transaction import Tx
from outbox.webhooks import key_mark
from outbox.webhooks.secrets import KeyRing, SealBroken

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


async def reseal(
    tx: Tx, table: str, ring: KeyRing, after: str, limit: int
) -> tuple[str | None, int, int]:
    """Encrypt again what older keys encrypted in the next `limit` rows of a LASTING table.

    Return the last bound value (None after the last page) and the counts of values that were
    encrypted again, and of those that no key decrypts.
    """
    bound, columns = SEALED[table]
    rows = await tx.all(
        f"select {bound}, {', '.join(columns)} from {table}"
        f" where {bound} > $1 order by {bound} limit $2",
        after, limit,
    )  # fmt: skip
    done = broken = 0
    for row in rows:
        for name in columns:
            if row[name] is None or not ring.stale(sealed := bytes(row[name])):
                continue
            try:
                again = ring.seal(ring.open(sealed, row[bound]), row[bound])
            except SealBroken:
                broken += 1
                continue
            # A value that was replaced meanwhile stays: a newer key encrypted it already.
            done += await tx.run(
                f"update {table} set {name} = $2 where {bound} = $1 and {name} = $3",
                row[bound], again, sealed,
            )  # fmt: skip
    return (rows[-1][bound] if len(rows) == limit else None), done, broken
