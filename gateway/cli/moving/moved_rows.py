"""What the rows of one owner become on their way to another database, and a digest of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gateway.domain.product_ownership import OWNERSHIP, UNOWNED
from gateway.domain.sealed_columns import SEALED
from outbox.database.transaction import Values
from outbox.queue.upkeep.owner_moves import FAR, Renumbering
from outbox.webhooks.secrets import KeyRing, SealBroken

TABLES = tuple(table for table in OWNERSHIP if table not in UNOWNED)
"""The tables with rows of owners, parents before children."""
COUNTED = frozenset({"deal_totals", "review_totals"})
"""Tables that triggers of their parents fill: what these made is replaced."""
QUEUED_MAIL = ("notices", "queued_mails")
"""Tables whose `due_at` lets a mail be sent."""
Rings = tuple[KeyRing | None, KeyRing | None]
"""The keys of the source and of the target, where they have some."""


class Digest:
    """The number of rows and a sum of their digests, whatever their order is."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, rows: Iterable[Values]) -> None:
        """Count rows in."""
        for row in rows:
            content = msgspec.msgpack.encode([_plain(value) for value in row])
            self._sum += int.from_bytes(hashlib.blake2b(content, digest_size=16).digest())
            self.count += 1

    @property
    def value(self) -> tuple[int, int]:
        """What two tables with the same rows have in common."""
        return self.count, self._sum


def changed(
    table: str, names: Sequence[str], values: Values, passage: Renumbering, rings: Rings
) -> dict[str, Any]:
    """Return a row, by its columns, as it is in the target."""
    row = dict(zip(names, values, strict=True))
    passage.change(table, row)
    if table in QUEUED_MAIL and (row["due_at"] or 0) >= FAR:
        row["due_at"] -= FAR
    bound, sealed = SEALED.get(table, ("", ()))
    for name in sealed:
        if row[name] is not None:
            row[name] = resealed(bytes(row[name]), row[bound], *rings)
    return row


def resealed(value: bytes, bound: str, old: KeyRing | None, new: KeyRing | None) -> bytes:
    """Return a sealed value for another ring; unchanged, if it opens it or the old one does not."""
    if old is None or new is None:
        return value
    try:
        new.open(value, bound)
    except SealBroken:
        try:
            return new.seal(old.open(value, bound), bound)
        except SealBroken:
            return value
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return bytes(value) if isinstance(value, memoryview) else value
