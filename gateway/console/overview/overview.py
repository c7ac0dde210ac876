"""The first page: what waits today and what webhooks have done; a page that compares two times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gateway.console.crm import calendar_days
from gateway.console.layout import display, polling
from gateway.console.layout.charts import Window, offered, window
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.reader import READER
from gateway.domain.contacts import task_days
from gateway.domain.reports import today
from gateway.domain.webhooks import overviews
from gateway.domain.webhooks.overviews import CAP
from gateway.records.errors import Refusal
from gateway.server.app_keys import DB
from gateway.server.installation import WEBHOOK_RULES
from outbox.ids import is_id
from outbox.queue.log.chart_figures import Figures, Pending
from outbox.webhooks import Webhook

MOST_ROWS = 20
MOST_STAGES = 12
BESIDE = ("24h", "7d")
"""The ranges that are compared."""
TROUBLED = ("disabled", "failing", "probing")


@dataclass(frozen=True, slots=True)
class Line:
    """One webhook of the table."""

    webhook: Webhook
    state: str
    figures: Figures
    pending: Pending

    @property
    def urgency(self) -> tuple[bool, bool, int, int]:
        """Sort key: in trouble, then with failures, then by how many, then by what waits."""
        failed = self.figures.failed
        return (self.state not in TROUBLED, not failed, -failed, -self.pending.waiting)


async def index(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show figures, charts and webhooks of the chosen range; htmx polls them."""
    view = window(request)
    overview = await request.app[DB].read(overviews.overview, visitor.actor, view.steps)
    lines = [
        Line(
            webhook,
            display.webhook_state(webhook),
            overview.figures.get(webhook.id, Figures()),
            overview.pending.get(webhook.id, Pending()),
        )
        for webhook in overview.webhooks
    ]
    oldest = min((webhook.created_at for webhook in overview.webhooks), default=None)
    ages = [line.pending.oldest_at for line in lines if line.pending.oldest_at is not None]
    waiting = [line.pending.waiting for line in lines]
    context = {
        "board": view.board(overview.steps, request[READER], overview.since, oldest),
        "lines": sorted(lines, key=lambda line: line.urgency)[:MOST_ROWS],
        "count": len(lines), "events": overview.events,
        "troubled": sum(line.state in TROUBLED for line in lines),
        "waiting": sum(waiting), "capped": CAP in waiting,
        "oldest": min(ages, default=None), "cap": CAP, "here": "/console",
    }  # fmt: skip
    if "HX-Request" not in request.headers:
        # The part that htmx polls shows nothing of it.
        context |= await _today(request, visitor)
    return polling.live(request, visitor, "overview.html", "parts/overview.html", context)


async def _today(request: web.Request, visitor: SignedIn) -> dict[str, Any]:
    figures = await request.app[DB].scan(visitor.actor.owner_id, today.today, visitor.actor)
    reader = request[READER]

    def at_most(count: int) -> str:
        return reader.texts.number(count) + ("+" if count >= today.MOST else "")

    return {
        "today": figures, "iso": calendar_days.date_of(figures.day, is_day=True, reader=reader),
        "tasks_cap": task_days.MOST, "most_stages": MOST_STAGES, "at_most": at_most,
    }  # fmt: skip


async def compare(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show both ranges; the query parameter `webhook` names one webhook."""
    db, webhook_id = request.app[DB], request.query.get("webhook", "")
    if webhook_id and not is_id(webhook_id):
        raise Refusal("not_found", "error.not_found_help")
    days = request.app[WEBHOOK_RULES].deliveries_days
    now = db.clock.wall()
    windows = [Window(one, now, days) for one in offered(days) if one.name in BESIDE]
    comparison = await db.read(
        overviews.compare, visitor.actor, webhook_id.lower(), [window.steps for window in windows]
    )
    boards = [
        window.board(steps, request[READER], comparison.since, comparison.oldest)
        for window, steps in zip(windows, comparison.steps, strict=True)
    ]
    context = {"boards": boards, "webhook": comparison.webhook, "asked": webhook_id.lower()}
    return polling.live(request, visitor, "beside.html", "parts/beside.html", context)
