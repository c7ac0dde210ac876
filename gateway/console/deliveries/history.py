"""The lists of deliveries, of all webhooks or of one, and of events, with filters and search."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from gateway.console.layout import display, pages, polling, typed_times
from gateway.console.layout.guard import SignedIn
from gateway.console.webhooks.webhook_form import groups
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import delivery_search, record_names, webhooks
from gateway.domain.webhooks.record_names import Named
from gateway.records.audit import Actor
from gateway.records.values.folding import fold
from gateway.server.app_keys import DB
from outbox.database.transaction import Database
from outbox.durations import MINUTE
from outbox.events.event_history import EventQuery
from outbox.ids import is_id
from outbox.queue.log.delivery_types import (
    FAILURES,
    FILTERS,
    NO_TIME,
    WAITING,
    DeliveryQuery,
    StateFilter,
    shown,
)
from outbox.webhooks import Webhook
from outbox.webhooks.operational import NAMES as OPERATIONAL

OFFERED: tuple[StateFilter, ...] = (
    "all", "waiting", "in_flight", "delivered", "failures", "cancelled",
)  # fmt: skip
OF_DELIVERIES = ("q", "state", "webhook", "event", "status", "since", "until")
"""The filters of the list of deliveries."""


async def deliveries(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List the deliveries of all webhooks; each query parameter is a filter."""
    filters = _filters(request, *OF_DELIVERIES)
    actor, db, after = visitor.actor, request.app[DB], _after(request)
    since, until = _times(filters, actor.zone)
    status = int(filters["status"]) if filters.get("status", "").isdecimal() else None
    query = DeliveryQuery(_state(filters), filters.get("event", ""), status, since, until)

    async def read(search: str) -> delivery_search.DeliveryList:
        wanted = delivery_search.Wanted(search, filters.get("webhook", ""))
        return await db.scan(
            actor.owner_id, delivery_search.deliveries, actor, db.clock, wanted, query, after=after
        )

    page = await read(filters.get("q", ""))
    meant = await _meant(db, actor, filters, page.webhooks, page.deliveries, page.searched)
    if meant.only:
        page = await read(meant.only.id)
    deleted = await db.read(webhooks.all_deleted, actor)
    urls = {one.id: display.name_of(one) for one in page.webhooks}
    context = {
        "webhook": None, "states": FILTERS, "groups": {**groups(), **groups(True)}, "meant": meant,
        "deleted": deleted, "gone": None,
        "urls": {one.id: display.name_of(one) for one in deleted} | urls,
    }  # fmt: skip
    return _list(request, visitor, page, filters, context)


async def of_webhook(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List the deliveries of a webhook; the query parameter `state` is a filter."""
    filters = _filters(request, "state")
    actor, db, only = visitor.actor, request.app[DB], _state(filters)
    page = await db.scan(
        actor.owner_id, delivery_search.of_webhook, actor, db.clock,
        webhook_id=pages.id_of(request), query=DeliveryQuery(only), after=_after(request),
    )  # fmt: skip
    webhook = page.deleted[0] if page.deleted else page.webhooks[0]
    context = {
        "webhook": webhook,
        "only": only,
        "offered": _offered(only),
        "gone": webhook if page.deleted else None,
        "narrower": _narrower(only, webhook.state == "active"),
    }
    return _list(request, visitor, page, filters, context)


def _list(
    request: web.Request,
    visitor: SignedIn,
    page: delivery_search.DeliveryList,
    filters: Mapping[str, str],
    context: Mapping[str, Any],
) -> web.Response:
    every = {
        "page": page, "filters": filters, "after": _after(request), "path": request.path,
        "this": _address(request.path, filters),
        "state_of": lambda one: shown(one, page.active(one)),
        "meant": Meant(), "waits": page.waits,
        "selecting": request.query.get("select", "")[:3] if page.deliveries else "",
    }  # fmt: skip
    return polling.live(
        request, visitor, "deliveries.html", "parts/delivery_rows.html", {**every, **context}
    )


def _state(filters: Mapping[str, str]) -> StateFilter:
    return next((one for one in FILTERS if one == filters.get("state")), "all")


def _offered(only: StateFilter) -> list[StateFilter]:
    """Return the filters of the first line; `held` is included only when it is selected."""
    inner = (*WAITING, *FAILURES)
    return [*OFFERED, *([] if only in OFFERED or only in inner else [only])]


def _narrower(only: StateFilter, active: bool) -> tuple[str, tuple[StateFilter, ...]]:
    """Return the selected group of states and its states, or nothing outside a group."""
    if only == "waiting" or only in WAITING:
        return "waiting", ("ready", "scheduled") if active else ("parked",)
    if only == "failures" or only in FAILURES:
        return "failures", FAILURES
    return "", ()


async def events(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """List all events with what became of their deliveries."""
    filters = _filters(request, "q", "event", "since", "until")
    actor = visitor.actor
    since, until = _times(filters, actor.zone)
    query = EventQuery(filters.get("event", ""), filters.get("q", ""), since, until)
    after = _after(request)
    db = request.app[DB]

    async def read(search: str) -> delivery_search.EventList:
        of = replace(query, cause=search)
        place = delivery_search.place_of(after)
        return await db.scan(
            actor.owner_id, delivery_search.events, actor, db.clock, of, after=place
        )

    page = await read(filters.get("q", ""))
    meant = await _meant(db, actor, filters, (), page.events, page.searched)
    if meant.only:
        page = await read(meant.only.id)
    active = {one.id for one in page.webhooks if one.state == "active"}
    context = {
        "page": page, "filters": filters, "groups": groups(), "after": after, "meant": meant,
        "this": _address(request.path, filters),
        "states_of": lambda one: Counter(
            shown(delivery, delivery.webhook_id in active) for delivery in page.of(one)
        ),
    }  # fmt: skip
    return polling.live(request, visitor, "events.html", "parts/event_rows.html", context)


@dataclass(frozen=True, slots=True)
class Meant:
    """What a search that is no id may mean: records and webhooks by what they are called."""

    records: Sequence[Named] = ()
    webhooks: Sequence[Webhook] = ()

    @property
    def only(self) -> Named | None:
        """The one record that is meant; its rows are shown at once."""
        return self.records[0] if len(self.records) == 1 and not self.webhooks else None


async def _meant(
    db: Database, actor: Actor, filters: Mapping[str, str], webhooks: Sequence[Webhook],
    rows: Sequence[object], searched: int | None,
) -> Meant:  # fmt: skip
    """Look for what is called as searched, when no id was found."""
    text = filters.get("q", "")
    if not text or rows or searched is not None or is_id(text):
        return Meant()
    named = await db.scan(actor.owner_id, record_names.matching, actor, db.clock, text)
    folded = fold(text)
    called = [one for one in webhooks if folded in fold(f"{one.description or ''} {one.url}")]
    return Meant(named, called[: record_names.MOST])


async def event(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show an event: its body and its deliveries."""
    record, deliveries, listed = await request.app[DB].read(
        delivery_search.event, visitor.actor, pages.id_of(request)
    )
    active = {one.id for one in listed if one.state == "active"}
    context = {
        "event": record,
        "deliveries": deliveries,
        "urls": {one.id: display.name_of(one) for one in listed},
        "state_of": lambda one: shown(one, one.webhook_id in active),
    }
    return polling.live(request, visitor, "event.html", "parts/event.html", context)


def _filters(request: web.Request, *names: str) -> Mapping[str, str]:
    """Return the filters of the query that say something."""
    filters = {name: request.query.get(name, "").strip() for name in names}
    filters["q"] = "".join(filter(str.isprintable, filters.get("q", "")))[
        : delivery_search.LONGEST_SEARCH
    ]
    if filters.get("event") not in (*EVENT_NAMES, *OPERATIONAL):
        filters["event"] = ""
    if filters.get("state") not in FILTERS or filters.get("state") == "all":
        filters["state"] = ""
    if not is_id(filters.get("webhook", "")):
        filters["webhook"] = ""
    if not (filters.get("status", "").isascii() and len(filters.get("status", "")) == 3):
        filters["status"] = ""
    return {name: text for name, text in filters.items() if text}


def _times(filters: Mapping[str, str], zone: str) -> tuple[int, int]:
    """Return the wanted range in microseconds; the minute of `until` belongs to it."""
    since = typed_times.typed(filters.get("since", ""), zone)
    until = typed_times.typed(filters.get("until", ""), zone, ends=True)
    return since or 0, NO_TIME if until is None else until + MINUTE


def _after(request: web.Request) -> str:
    after = request.query.get("after", "")
    return after if delivery_search.is_cursor(after) else ""


def _address(path: str, filters: Mapping[str, Any]) -> str:
    return f"{path}?{urlencode(filters)}" if filters else f"{path}?"
