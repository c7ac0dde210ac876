"""The lists of deliveries, of all webhooks or of one, and of events, with filters and search."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.console.frame import pages, polling
from gateway.console.frame.guard import Visitor
from gateway.console.webhooks.options import groups
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import history
from gateway.server.app_keys import DB
from outbox.events.history import Wanted as WantedEvents
from outbox.ids import is_id
from outbox.queue.log.delivery_types import (
    FAILED,
    NO_TIME,
    WAITING,
    DeliveryQuery,
    StateFilter,
    shown,
)
from outbox.webhooks.operational import NAMES as OPERATIONAL

STATES: tuple[StateFilter, ...] = (
    "all", "failed", "waiting", "ready", "scheduled", "parked", "held", "in_flight", "delivered",
    "exhausted", "gone", "dead", "cancelled",
)  # fmt: skip
OFFERED: tuple[StateFilter, ...] = (
    "all", "waiting", "in_flight", "delivered", "failed", "cancelled",
)  # fmt: skip
MINUTE = 60_000_000


async def deliveries(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List the deliveries of all webhooks; each query parameter is a filter."""
    asked = _asked(request, "q", "state", "webhook", "event", "status", "since", "until")
    actor, db, after = visitor.actor, request.app[DB], _after(request)
    since, until = _times(asked, actor.zone)
    status = int(asked["status"]) if asked.get("status", "").isdecimal() else None
    query = DeliveryQuery(_state(asked), asked.get("event", ""), status, since, until)
    found = await db.scan(
        actor.owner_id, history.deliveries, actor, db.clock, asked.get("q", ""),
        asked.get("webhook", ""), query, after,
    )  # fmt: skip
    context = {
        "webhook": None, "states": STATES, "groups": {**groups(), **groups(True)},
        "urls": {one.id: one.url for one in found.webhooks},
    }  # fmt: skip
    return _list(request, visitor, found, asked, context)


async def of_webhook(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List the deliveries of a webhook; the query parameter `state` is a filter."""
    asked = _asked(request, "state")
    actor, db, only = visitor.actor, request.app[DB], _state(asked)
    found = await db.scan(
        actor.owner_id, history.of_webhook, actor, db.clock, pages.id_of(request),
        DeliveryQuery(only), _after(request),
    )  # fmt: skip
    [webhook] = found.webhooks
    context = {
        "webhook": webhook, "only": only, "filters": _offered(only),
        "narrower": _narrower(only, webhook.state == "active"),
    }  # fmt: skip
    return _list(request, visitor, found, asked, context)


def _list(
    request: web.Request,
    visitor: Visitor,
    found: history.Found,
    asked: Mapping[str, str],
    context: Mapping[str, Any],
) -> web.Response:
    every = {
        "found": found, "asked": asked, "after": _after(request), "path": request.path,
        "this": _address(request.path, asked),
        "state_of": lambda one: shown(one, found.active(one)),
        "selecting": "select" in request.query and bool(found.deliveries),
    }  # fmt: skip
    return polling.live(
        request, visitor, "deliveries.html", "parts/delivery_rows.html", {**every, **context}
    )


def _state(asked: Mapping[str, str]) -> StateFilter:
    return next((one for one in STATES if one == asked.get("state")), "all")


def _offered(only: StateFilter) -> list[StateFilter]:
    """Return the filters of the first line; `held` is included only when it is selected."""
    inner = (*WAITING, *FAILED)
    return [*OFFERED, *([] if only in OFFERED or only in inner else [only])]


def _narrower(only: StateFilter, active: bool) -> tuple[str, tuple[StateFilter, ...]]:
    """Return the selected group of states and its states, or nothing outside a group."""
    if only == "waiting" or only in WAITING:
        return "waiting", ("ready", "scheduled") if active else ("parked",)
    if only == "failed" or only in FAILED:
        return "failed", FAILED
    return "", ()


async def events(request: web.Request, visitor: Visitor) -> web.StreamResponse:
    """List all events with what became of their deliveries."""
    asked = _asked(request, "q", "event", "since", "until")
    actor = visitor.actor
    since, until = _times(asked, actor.zone)
    wanted = WantedEvents(asked.get("event", ""), asked.get("q", ""), since, until)
    after = _after(request)
    db = request.app[DB]
    found = await db.scan(
        actor.owner_id, history.events, actor, db.clock, asked.get("q", ""), wanted,
        history.place_of(after),
    )  # fmt: skip
    active = {one.id for one in found.webhooks if one.state == "active"}
    context = {
        "found": found, "asked": asked, "groups": groups(), "after": after,
        "this": _address(request.path, asked),
        "states_of": lambda one: Counter(
            shown(made, made.webhook_id in active) for made in found.of(one)
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
        "state_of": lambda one: shown(one, one.webhook_id in active),
    }
    return polling.live(request, visitor, "event.html", "parts/event.html", context)


def _asked(request: web.Request, *names: str) -> Mapping[str, str]:
    """Return the filters of the query that say something."""
    asked = {name: request.query.get(name, "").strip() for name in names}
    asked["q"] = "".join(filter(str.isprintable, asked.get("q", "")))[: history.LONGEST_SEARCH]
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
