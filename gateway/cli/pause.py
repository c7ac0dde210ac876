"""The command `carteiro resume`, and what other commands say of a paused database."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from gateway.cli.commands import Say, existing
from gateway.domain import queued_mail
from gateway.server.config import Config
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.queue.upkeep import pause_mark

WEBHOOKS = "Webhooks stay paused: activate them one by one."


async def resume(config: Config, arguments: Namespace, say: Say) -> None:
    """End the pause of a database, also while servers use it."""
    async with existing(config) as db:
        waiting = await db.read(queued_mail.count_waiting)
        if not await db.write(pause_mark.resume):
            say("The database is not paused.")
            return
    say(f"Resumed: {_mails(waiting)}, orders and quotes expire, unused image files are deleted.")
    say(WEBHOOKS)


async def told_of_pause(tx: Tx) -> Sequence[str]:
    """Return lines that say what rests in a paused database; none for another one."""
    if not await pause_mark.is_paused(tx):
        return ()
    waiting = _mails(await queued_mail.count_waiting(tx))
    return (
        "It is paused: no webhook sends, no mail is sent, no order or quote expires, no image file "
        "is deleted.",
        f"`carteiro resume` ends that for all but the webhooks: {waiting} then.",
    )


async def must_not_be_paused(db: Database, named: str) -> None:
    """Raise CannotStart when a database is paused."""
    if await db.read(pause_mark.is_paused):
        raise CannotStart(f"{named} is paused; run `carteiro resume` with its configuration first")


def _mails(waiting: int) -> str:
    return "1 waiting mail is sent" if waiting == 1 else f"{waiting:,} waiting mails are sent"
