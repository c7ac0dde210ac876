"""Reads the events feed of an owner."""

from collections.abc import Collection

from msgspec import UNSET, Struct, UnsetType

from gateway.domain.catalogue import EVENT_NAMES
from gateway.records.access import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.values import dates
from gateway.records.values.schemas import Id, Instant
from outbox.database.transaction import Tx
from outbox.events import feed
from outbox.events.feed import UnknownPlace
from outbox.ids import is_id


class Event(Struct, frozen=True, rename="camel"):
    """An event. `body` is the exact delivery body; null after the erasure of a person."""

    id: Id
    event: str
    record_id: Id
    record_version: int
    occurred_at: Instant
    body: str | None
    request_id: str | UnsetType = UNSET
    erased_at: Instant | UnsetType = UNSET


class Events(Struct, frozen=True, rename="camel"):
    """Events, oldest first. Send `nextCursor` as `after` for the next page while `hasMore`."""

    data: list[Event]
    has_more: bool
    next_cursor: Id | UnsetType = UNSET


async def page(
    tx: Tx, actor: Actor, *, after: str, names: Collection[str] | None, limit: int, days: int
) -> Events:
    """Return a page of the owner's events of the last `days`; `names` limits it to these events.

    `after` is the id of an event, or empty. Raises forbidden, validation_error.
    """
    actor.must("read")
    if after and not is_id(after):
        raise _unknown()
    # A name that is not in the catalogue matches nothing.
    known = None if names is None else tuple(name for name in EVENT_NAMES if name in names)
    try:
        found = await feed.page(
            tx, actor.owner_id, after=after, names=known, since=tx.now - days * dates.DAY,
            limit=limit,
        )  # fmt: skip
    except UnknownPlace:
        raise _unknown() from None
    place: str | UnsetType = UNSET if found.place is None else found.place
    return Events([_shown(entry) for entry in found.entries], found.more, place)


def _shown(entry: feed.Entry) -> Event:
    return Event(
        entry.id, entry.name, entry.record_id, entry.record_version, dates.show(entry.occurred_at),
        None if entry.body is None else entry.body.decode(),
        UNSET if entry.request_id is None else entry.request_id,
        UNSET if entry.erased_at is None else dates.show(entry.erased_at),
    )  # fmt: skip


def _unknown() -> Refusal:
    message = "Send the nextCursor of the previous page or the id of one of your events."
    return Refusal(
        "validation_error", f"after: {message}",
        faults=[Fault("after", "invalid_parameter", message)],
    )  # fmt: skip
