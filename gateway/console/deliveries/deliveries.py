"""The pages of one delivery: its course and attempts, its replay; an attempt as a curl command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web
from babel import Locale
from babel.dates import format_datetime, format_skeleton

from gateway.console.layout import display, pages, polling, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.webhooks.doctor import usual_schedule
from gateway.domain.webhooks import deliveries
from gateway.domain.webhooks.deliveries import DeliveryPage
from gateway.records.values import dates
from gateway.server.app_keys import DB, REQUEST_ID
from gateway.server.telemetry.logs import logger
from outbox.durations import DAY, SECOND
from outbox.events.cloud_events import context_of
from outbox.events.sent_body import sent
from outbox.queue.log.delivery_types import Attempt, shown

LONGEST = 32_768
"""Bytes of a body that a command may have in it; shells and systems refuse very long words."""
WEEK = 7 * DAY
SHOWN_ATTEMPTS = 12
"""Attempts in the list; of more, the first ones are left out."""


@dataclass(frozen=True, slots=True)
class Course:
    """What a delivery has behind it and before it.

    `number` of `total` is the next attempt of the schedule, or the last one of a finished delivery.
    `next_at` and `ends_at` are microseconds UTC, None when there is nothing to come.
    """

    attempts: Sequence[Attempt]
    """The latest, the oldest of them first."""
    earlier: int
    unshown: int
    """Attempts that are too old to be shown in full."""
    number: int
    total: int
    next_at: int | None
    ends_at: int | None
    zone: str
    now: int

    def clock(self, at: int, locale: Locale) -> str:
        """Return a time for a sentence: `21:24`, `Tuesday 21:24`, `Dec 3, 21:24`."""
        moment, today = dates.local(at, self.zone), dates.local(self.now, self.zone)
        if moment.date() == today.date():
            return f"{moment:%H:%M}"
        if abs(at - self.now) < WEEK - DAY:
            return f"{format_datetime(moment, 'EEEE', locale=locale)} {moment:%H:%M}"
        return f"{format_skeleton('MMMd', moment, locale=locale)}, {moment:%H:%M}"


def course(page: DeliveryPage, now: int, zone: str) -> Course:
    """Return the course of a delivery; nothing of a parked one is sent."""
    delivery, schedule = page.delivery, page.schedule
    total = len(schedule.waits) + 1
    waits = delivery.state in ("ready", "in_flight", "held")
    # A replaced schedule may be shorter than what has been tried.
    number = min(delivery.tries + (1 if waits else 0), max(total, delivery.tries))
    next_at = ends_at = None
    if waits and page.active and delivery.state != "held":
        next_at = now + max(delivery.due_in, 0) if delivery.state == "ready" else now
        waiting = page.waits.get(delivery.id)
        if waiting is not None and waiting.until is not None:
            # When its webhook sends again.
            next_at = max(next_at, waiting.until)
        ends_at = next_at + round(sum(schedule.waits[delivery.tries :]) * SECOND)
    latest = list(page.attempts[:SHOWN_ATTEMPTS])[::-1]
    return Course(
        attempts=latest,
        earlier=page.attempted - len(latest),
        unshown=page.attempted - len(page.attempts),
        number=max(number, 1),
        total=total,
        next_at=next_at,
        ends_at=ends_at,
        zone=zone,
        now=now,
    )


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show a delivery: its event, the exact body and the latest attempts."""
    db = request.app[DB]
    page = await db.read(
        deliveries.page, visitor.actor, pages.id_of(request), usual_schedule(request)
    )
    delivery, active = page.delivery, page.active
    context = {
        "delivery": delivery, "webhook": page.webhook, "deleted": page.deleted,
        "event": page.event,
        "attempts": page.attempts, "others": page.siblings, "replayed_by": page.replayed_by,
        "state": shown(delivery, active), "state_of": lambda other: shown(other, active),
        "stages": display.stages, "moving": delivery.state in deliveries.UNFINISHED and active,
        "question": deliveries.question(delivery), "place": page.place,
        "lines_cap": deliveries.LINES_COUNTED,
        "course": course(page, db.clock.wall(), visitor.actor.zone),
        "waits": page.waits, "waiting": page.waits.get(delivery.id),
        "curl_of": lambda attempt: curl(attempt, _sent(page, attempt)),
        "thin": _thin(page),
        "other_form": any(context_of(one.request_headers) for one in page.attempts[:1]),
    }  # fmt: skip
    return polling.live(request, visitor, "delivery.html", "parts/delivery.html", context)


def _sent(page: DeliveryPage, attempt: Attempt) -> bytes | None:
    """Return the body of an attempt; None when it is gone."""
    event = page.event
    if event is None or event.body is None:
        return None
    return sent(event.body, attempt.request_headers, event.record_id, event.occurred_at)


def _thin(page: DeliveryPage) -> str | None:
    """Return the body of the latest attempt if it had an address for the data, or another form."""
    if not page.attempts or page.event is None:
        return None
    body = _sent(page, page.attempts[0])
    return None if body is None or body == page.event.body else body.decode("utf-8", "replace")


async def replay_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask for confirmation before a replay of a delivered or waiting delivery."""
    delivery_id = pages.id_of(request)
    delivery, question = await request.app[DB].read(
        deliveries.to_replay, visitor.actor, delivery_id
    )
    context = {"delivery": delivery, "question": question}
    return templates.render(request, visitor, "replay.html", context)


async def replay_one(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Replay a delivery and show the new one, or ask for confirmation first.

    The field `confirmed` names the question that the user has confirmed.
    """
    delivery_id = pages.id_of(request)
    replayed, active = await request.app[DB].write(
        deliveries.replay_confirmed, visitor.actor, delivery_id, form.text("confirmed")
    )
    if not replayed:
        return pages.to(f"/console/deliveries/{delivery_id}/replay")
    # Its attempts bear the request id of the event; this line leads from the replay to them.
    logger().info(
        "replayed", request_id=request[REQUEST_ID], delivery_id=replayed, replay_of=delivery_id
    )
    return pages.to(f"/console/deliveries/{replayed}", "replayed" if active else "replay_parked")


def curl(attempt: Attempt, body: bytes | None) -> str | None:
    """Return an attempt as a curl command; values of custom headers are masked, as in the log.

    curl would otherwise read `[]` and `{}` as patterns, and fold `/../`.
    None when it was not sent, or the body is gone or too long for a command line.
    """
    if not attempt.request_headers or body is None or len(body) > LONGEST:
        return None
    words = [f"curl -X POST --globoff --path-as-is {shlex.quote(display.inert(attempt.url))}"]
    words += [
        f"  -H {shlex.quote(f'{display.inert(name)}: {display.inert(value)}')}"
        for name, value in attempt.request_headers
    ]
    words.append(f"  --data-binary {shlex.quote(body.decode('utf-8', 'replace'))}")
    return " \\\n".join(words)
