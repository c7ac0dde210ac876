"""Whether a database is paused: a copy to look at, which does nothing that others notice.

The mark is in the database, so that every server of the copy finds it, and every backup of it has
it. Without it a copy would do the work of the installation that it was copied from a second time.
"""

from __future__ import annotations

from outbox.database.transaction import Tx

_IS_PAUSED = "select 1 as paused from outbox_state where paused_at is not null"
_PAUSE = "update outbox_state set paused_at = $1"
_RESUME = "update outbox_state set paused_at = null where paused_at is not null"


async def is_paused(tx: Tx) -> bool:
    """Return whether the duties rest whose work others notice."""
    return await tx.one(_IS_PAUSED) is not None


async def pause(tx: Tx) -> None:
    """Let these duties rest until the database is resumed."""
    await tx.run(_PAUSE, tx.now)


async def resume(tx: Tx) -> bool:
    """Let them run again, on running servers too; return False when the database is not paused."""
    return await tx.run(_RESUME) == 1
