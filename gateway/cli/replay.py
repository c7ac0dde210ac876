"""`carteiro replay`: sends the failed or selected deliveries of a webhook again."""

import asyncio
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from typing import get_args

from gateway.cli.commands import Say, existing
from gateway.cli.data.progress import Progress
from gateway.domain.webhooks import replays
from gateway.records.access import Actor
from gateway.records.values import dates
from gateway.server.config import Config
from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.errors import CannotStart, OutboxError
from outbox.ids import is_id
from outbox.queue.log import delivery_log
from outbox.queue.replays import recovery
from outbox.queue.replays.recovery import Wanted
from outbox.queue.replays.replay import NotReplayable
from outbox.states import End
from outbox.webhooks import Webhook

BATCH = 100
MOST_WAITING = 10_000
"""Waiting deliveries are counted up to this number."""
AGO = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(s|min|h|d)")
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
ENDS: Mapping[str, tuple[End, ...]] = {
    "failed": ("exhausted", "gone", "dead"),
    **{state: (state,) for state in get_args(End)},
}


class NotAll(OutboxError):
    """Some deliveries cannot be replayed; the text counts the reasons."""


async def replay(config: Config, arguments: Namespace, say: Say) -> None:
    """Replay deliveries of a webhook. Raise CannotStart, NotAll."""
    async with existing(config) as db:
        webhook = await _webhook(db, arguments.webhook)
        actor = Actor(webhook.owner_id, "system")
        if arguments.delivery:
            replayed = await _selected(
                db, actor, webhook, arguments.delivery, dry=arguments.dry_run
            )
            refused: Counter[str] = Counter()
        else:
            replayed, refused = await _since(db, actor, webhook, arguments)
            waiting, due_in = await db.read(recovery.retries, webhook.id, MOST_WAITING)
            first = dates.show(db.clock.wall() + due_in)
    done = "would be replayed" if arguments.dry_run else "replayed"
    say(f"{replayed} {'delivery' if replayed == 1 else 'deliveries'} {done}.")
    if replayed and webhook.state != "active":
        say(f"The webhook is {webhook.state}: they wait until somebody activates it.")
    if not arguments.delivery and waiting and webhook.state == "active":
        count = f"{waiting:,}" if waiting < MOST_WAITING else f"{waiting:,} or more"
        say(f"Still to be tried by their schedule: {count}, the first at {first}.")
    if refused:
        reasons = " ".join(f"{count} times: {why}" for why, count in refused.most_common())
        raise NotAll(f"{refused.total()} could not be replayed. {reasons}")


async def _webhook(db: Database, webhook_id: str) -> Webhook:
    webhook = await db.read(webhooks.one, webhook_id.lower()) if is_id(webhook_id) else None
    if webhook is None:
        raise CannotStart(f"there is no webhook {webhook_id}; its page in the console shows the id")
    return webhook


async def _selected(
    db: Database, actor: Actor, webhook: Webhook, delivery_ids: list[str], *, dry: bool
) -> int:
    """Replay exactly these deliveries, all or none."""
    ids = list(dict.fromkeys(delivery_ids))
    for delivery_id in ids:
        row = await db.read(_delivery, delivery_id.lower()) if is_id(delivery_id) else None
        if row != webhook.id:
            raise CannotStart(f"this webhook has no delivery {delivery_id}")
    if not dry:
        await db.write(_all, actor, [delivery_id.lower() for delivery_id in ids])
    return len(ids)


async def _delivery(tx: Tx, delivery_id: str) -> str | None:
    delivery = await delivery_log.one(tx, delivery_id)
    return None if delivery is None else delivery.webhook_id


async def _all(tx: Tx, actor: Actor, ids: list[str]) -> None:
    for delivery_id in ids:
        try:
            await replays.one(tx, actor, delivery_id)
        except NotReplayable as why:
            raise CannotStart(f"{delivery_id}: {why} Nothing is replayed.") from None


async def _since(
    db: Database, actor: Actor, webhook: Webhook, arguments: Namespace
) -> tuple[int, Counter[str]]:
    """Replay what the options select, a batch in each transaction; a repeated run goes on."""
    now = db.clock.wall()
    selection = Wanted(
        ENDS[arguments.state], _instant("--since", arguments.since, now),
        now if arguments.until is None else _instant("--until", arguments.until, now),
    )  # fmt: skip
    if selection.since >= selection.until:
        raise CannotStart("--since is not before --until")
    total = await db.read(replays.count, actor, webhook.id, selection)
    if arguments.dry_run:
        return total, Counter()
    replayed, refused, place = 0, Counter[str](), ""
    try:
        with Progress("replay", sys.stderr, db.clock) as progress:
            while True:
                batch = await db.write(replays.batch, actor, webhook.id, selection, place, BATCH)
                replayed += len(batch.replayed)
                refused.update(batch.refused)
                if not batch.place:
                    return replayed, refused
                place = batch.place
                done = (replayed + refused.total()) / max(total, 1)
                progress.at(done, f"{replayed} of {total} replayed")
    except asyncio.CancelledError:
        until = dates.show(selection.until)
        sys.stderr.write(
            f"carteiro: {replayed} of {total} replayed; "
            f"the same command with --until {until} goes on\n"
        )
        raise


def _instant(option: str, text: str, now: int) -> int:
    """Return the time that `text` names: an instant, or how long ago."""
    ago = AGO.fullmatch(text)
    if ago is not None:
        return max(now - round(float(ago[1]) * SECONDS[ago[2]] * SECOND), 0)
    moment = dates.parse(text)
    if moment is None or moment < 0:
        raise CannotStart(
            f"{option} {text!r} must be a time such as 2026-11-22T08:00:00Z, or how long ago, "
            "such as 90min, 2h or 3d"
        )
    return moment
