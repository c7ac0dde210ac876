"""The course of a delivery: its attempts, the next one, and when the last one would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_datetime, format_skeleton

from gateway.domain.webhooks.deliveries import DeliveryPage
from outbox.durations import DAY, SECOND
from outbox.queue.log.delivery_types import Attempt

WEEK = 7 * DAY
SHOWN = 12
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
        moment, today = _local(at, self.zone), _local(self.now, self.zone)
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
    latest = list(page.attempts[:SHOWN])[::-1]
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


def _local(at: int, zone: str) -> datetime:
    return datetime.fromtimestamp(at // SECOND, ZoneInfo(zone))
