"""The first page: what the webhooks of an account have done, and the failing ones first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

from gateway.console.frame import display, polling
from gateway.console.frame.chart_panel import Window, window
from gateway.console.frame.guard import Visitor
from gateway.domain.webhooks import webhooks
from gateway.records.access import Actor
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx
from outbox.queue.log import series
from outbox.queue.log.series import Figures, Pending
from outbox.webhooks import Webhook

MOST_ROWS = 20
CAP = 1_000
"""Waiting deliveries of a webhook are counted up to this number; its own page counts further."""
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


@dataclass(frozen=True, slots=True)
class _Read:
    lines: Sequence[Line]
    steps: Sequence[Figures]
    events: int
    since: int


async def index(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show figures, charts and webhooks of the chosen range; htmx polls them."""
    asked = window(request)
    found = await request.app[DB].read(_read, visitor.actor, asked)
    oldest = min((line.webhook.created_at for line in found.lines), default=None)
    ages = [line.pending.oldest_at for line in found.lines if line.pending.oldest_at is not None]
    waiting = [line.pending.waiting for line in found.lines]
    context = {
        "board": asked.board(found.steps, visitor.actor.zone, found.since, oldest),
        "lines": sorted(found.lines, key=lambda line: line.urgency)[:MOST_ROWS],
        "count": len(found.lines), "events": found.events,
        "troubled": sum(line.state in TROUBLED for line in found.lines),
        "waiting": sum(waiting), "capped": CAP in waiting,
        "oldest": min(ages, default=None), "cap": CAP, "here": "/console",
    }  # fmt: skip
    return polling.live(request, visitor, "overview.html", "parts/overview.html", context)


async def _read(tx: Tx, actor: Actor, asked: Window) -> _Read:
    owner_id, chosen = actor.owner_id, asked.range
    listed = await webhooks.listed(tx, actor)
    figures = await series.by_webhook(tx, owner_id, asked.start, asked.end)
    pending = await series.pending(tx, "owner", owner_id, CAP)
    lines = [
        Line(
            webhook, display.webhook_state(webhook),
            figures.get(webhook.id, Figures()), pending.get(webhook.id, Pending()),
        )
        for webhook in listed
    ]  # fmt: skip
    steps = await series.by_step(tx, "owner", owner_id, asked.start, chosen.step, chosen.count)
    events = await series.events(tx, owner_id, asked.start, asked.end)
    return _Read(lines, steps, events, await series.since(tx))
