"""Which columns are encrypted with the key ring, and the column that each value is bound to."""

from collections.abc import Mapping

from outbox.webhooks import key_mark

SEALED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "webhooks": ("id", key_mark.SEALED),
    "sessions": ("id", ("reveal",)),
    "payment_secrets": ("store_id", ("secret", "staged_secret", "old_secret")),
    "checkouts": ("order_id", ("sealed",)),
}
"""The sealed columns of the owners' tables."""
