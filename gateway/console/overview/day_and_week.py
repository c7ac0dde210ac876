"""The page that shows the last 24 hours beside the last 7 days, of one webhook or of all."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from gateway.console.frame import polling
from gateway.console.frame.chart_panel import Window
from gateway.console.frame.guard import Visitor
from gateway.console.frame.ranges import offered
from gateway.domain.webhooks import webhooks
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.server.app_keys import CONFIG, DB
from outbox.database.transaction import Tx
from outbox.ids import is_id
from outbox.queue.log import series
from outbox.queue.log.series import Figures
from outbox.webhooks import Webhook

BESIDE = ("24h", "7d")


async def show(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show both ranges; the query parameter `webhook` names one webhook."""
    db, asked = request.app[DB], request.query.get("webhook", "")
    if asked and not is_id(asked):
        raise Refusal("not_found", "error.not_found_help")
    days = request.app[CONFIG].retention.deliveries_days
    now = db.clock.wall()
    windows = [Window(one, now, days) for one in offered(days) if one.name in BESIDE]
    webhook, oldest, steps, since = await db.read(_read, visitor.actor, asked.lower(), windows)
    boards = [
        window.board(some, visitor.actor.zone, since, oldest)
        for window, some in zip(windows, steps, strict=True)
    ]
    context = {"boards": boards, "webhook": webhook, "asked": asked.lower()}
    return polling.live(request, visitor, "beside.html", "parts/beside.html", context)


async def _read(
    tx: Tx, actor: Actor, webhook_id: str, windows: Sequence[Window]
) -> tuple[Webhook | None, int | None, list[list[Figures]], int]:
    webhook = await webhooks.one(tx, actor, webhook_id) if webhook_id else None
    if webhook is not None:
        created = [webhook.created_at]
    else:
        created = [one.created_at for one in await webhooks.listed(tx, actor)]
    steps = [
        await series.by_step(
            tx, "webhook" if webhook else "owner", webhook.id if webhook else actor.owner_id,
            window.start, window.range.step, window.range.count,
        )
        for window in windows
    ]  # fmt: skip
    return webhook, min(created, default=None), steps, await series.since(tx)
