"""The pages of all deliveries and of all events, with their filters and their search."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.console.frame import display, pages, polling
from gateway.console.frame.guard import Visitor
from gateway.console.webhooks.options import groups
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import history
from gateway.server.app_keys import DB
from outbox.events.history import EventQuery
from outbox.ids import is_id
from outbox.queue.log import delivery_log, delivery_search
from outbox.queue.log.delivery_search import NO_TIME
from outbox.webhooks.operational import NAMES as OPERATIONAL

DELIVERIES = "/console/deliveries"
EVENTS = "/console/events"
STATES: tuple[delivery_log.Filter, ...] = (
    "all", "failed", "waiting", "ready", "scheduled", "parked", "held", "in_flight", "delivered",
    "exhausted", "gone", "dead", "cancelled",
)  # fmt: skip
MINUTE = 60_000_000


async def deliveries(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List the deliveries of all webhooks; each query parameter is a filter."""
    asked = _asked(request, "q", "state", "webhook", "event", "status", "since", "until")
    actor = visitor.actor
    state = asked.get("state", "all")
    only: delivery_log.Filter = next((one for one in STATES if one == state), "all")
    since, until = _times(asked, actor.zone)
    status = int(asked["status"]) if asked.get("status", "").isdecimal() else None
    wanted = delivery_search.Wanted(only, asked.get("event", ""), status, since, until)
    after = _after(request)
    db = request.app[DB]
    found = await db.scan(
        actor.owner_id, history.deliveries, actor, db.clock, asked.get("q", ""),
        asked.get("webhook", ""), wanted, after,
    )  # fmt: skip
    context = {
        "found": found, "asked": asked, "states": STATES, "groups": {**groups(), **groups(True)},
        "after": after,
        "this": _address(DELIVERIES, asked), "urls": {one.id: one.url for one in found.webhooks},
        "state_of": lambda one: display.delivery_state(one, found.active(one)),
        "selecting": "select" in request.query and bool(found.deliveries),
    }  # fmt: skip
    return polling.live(request, visitor, "history.html", "parts/history_rows.html", context)


async def events(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List all events with what became of their deliveries."""
    asked = _asked(request, "q", "event", "since", "until")
    actor = visitor.actor
    since, until = _times(asked, actor.zone)
    wanted = EventQuery(asked.get("event", ""), asked.get("q", ""), since, until)
    after = _after(request)
    db = request.app[DB]
    found = await db.scan(
        actor.owner_id, history.events, actor, db.clock, asked.get("q", ""), wanted,
        history.place_of(after),
    )  # fmt: skip
    active = {one.id for one in found.webhooks if one.state == "active"}
    context = {
        "found": found, "asked": asked, "groups": groups(), "after": after,
        "this": _address(EVENTS, asked),
        "states_of": lambda one: Counter(
            display.delivery_state(made, made.webhook_id in active) for made in found.of(one)
        ),
    }  # fmt: skip
    return polling.live(request, visitor, "events.html", "parts/event_rows.html", context)


async def event(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """Show an event: its body and its deliveries."""
    found, made, listed = await request.app[DB].read(
        history.event, visitor.actor, pages.id_of(request)
    )
    active = {one.id for one in listed if one.state == "active"}
    context = {
        "event": found,
        "deliveries": made,
        "urls": {one.id: one.url for one in listed},
        "state_of": lambda one: display.delivery_state(one, one.webhook_id in active),
    }
    return polling.live(request, visitor, "event.html", "parts/event.html", context)


def _asked(request: web.Request, *names: str) -> Mapping[str, str]:
    """Return the filters of the query that say something."""
    asked = {name: request.query.get(name, "").strip() for name in names}
    asked["q"] = "".join(filter(str.isprintable, asked["q"]))[: history.LONGEST_SEARCH]
    if asked.get("event") not in (*EVENT_NAMES, *OPERATIONAL):
        asked["event"] = ""
    if asked.get("state") not in STATES or asked.get("state") == "all":
        asked["state"] = ""
    if not is_id(asked.get("webhook", "")):
        asked["webhook"] = ""
    if not (asked.get("status", "").isascii() and len(asked.get("status", "")) == 3):
        asked["status"] = ""
    return {name: text for name, text in asked.items() if text}


def _times(asked: Mapping[str, str], zone: str) -> tuple[int, int]:
    """Return the wanted range in microseconds; the minute of `until` belongs to it."""
    since, until = (_moment(asked.get(name, ""), zone) for name in ("since", "until"))
    return since or 0, NO_TIME if until is None else until + MINUTE


def _moment(text: str, zone: str) -> int | None:
    try:
        return (
            round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 10**6
        )
    except (ValueError, OverflowError):
        return None


def _after(request: web.Request) -> str:
    after = request.query.get("after", "")
    return after if log_cursor(after) else ""


def log_cursor(text: str) -> bool:
    """Return whether a text may be the place of a page."""
    head, _, tail = text.partition("-")
    return all(
        is_id(part) or (part.isdecimal() and part.isascii() and len(part) < 19)
        for part in ((head, tail) if tail else (head,))
    )


def _address(path: str, asked: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(asked)}" if asked else f"{path}?"
