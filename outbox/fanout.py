"""Fan-out: each committed event gets the next seq and one delivery per subscribed webhook.

It runs one at a time over the whole installation, so that `seq` is an order without late comers.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import structlog

from outbox import bulk, lanes
from outbox.bulk import IDS, ITEMS, items
from outbox.database import Row, Tx
from outbox.deliveries import FIRST_WINDOW, Claimed, Room

EVENTS_AT_ONCE = 500

log = structlog.get_logger("outbox")

# Another node that is fanning out will do these events too, so nobody waits here.
TURN = "select /*sqlite true*/ /*postgres pg_try_advisory_xact_lock(7201965)*/ as mine"

UNSEEN = """
select pos, id, owner_id, name, record_id, record_version, webhook_id, occurred_at, request_id,
  traceparent, body
from events where seq is null order by pos limit $1
"""

NEXT_SEQ = "update outbox_state set seq = seq + $1 where id = 1 returning seq"
GIVE_SEQ = f"""
update events set seq = s.seq_given
from (
  select cast(value ->> 0 as bigint) as place, cast(value ->> 1 as bigint) as seq_given
  from {ITEMS}) as s
where events.pos = s.place
"""

WEBHOOKS = f"""
select w.id, w.owner_id, w.events, w.since_pos, w.state, l.failing,
  l.wait_until <= (select due_now()) as open
from webhooks w join lanes l on l.webhook_id = w.id
where w.owner_id in {IDS} order by w.id
"""

COLUMNS = (
    "id", "owner_id", "event_id", "webhook_id", "origin", "state", "retry", "next_at", "tries",
    "attempts", "claim", "node_id", "record_id", "seq", "created_at",
)  # fmt: skip
ONCE = "on conflict (event_id, webhook_id) where origin = 'event' do nothing"


@dataclass(frozen=True, slots=True)
class FannedOut:
    """What one round did: events met and deliveries made per event name, and those born claimed."""

    events: Mapping[str, int]
    created: Mapping[str, int]
    claimed: list[Claimed]
    room: Room
    """What is left of the room that was given."""


async def fan_out(tx: Tx, room: Room) -> FannedOut:
    """Give up to EVENTS_AT_ONCE events their seq and their deliveries.

    While `room` has slots for healthy webhooks, deliveries are born in flight: idle, one commit
    lies between a write and its request.
    """
    turn = await tx.one(TURN)
    events = await tx.all(UNSEEN, EVENTS_AT_ONCE) if turn and turn["mine"] else []
    if not events:
        return FannedOut({}, {}, [], room)
    last = await tx.one(NEXT_SEQ, len(events))
    assert last is not None
    first_seq = int(last["seq"]) - len(events) + 1
    await tx.run(GIVE_SEQ, items([(row["pos"], first_seq + n) for n, row in enumerate(events)]))

    owners = items(sorted({row["owner_id"] for row in events}))
    subscribed: dict[str, list[tuple[Row, frozenset[str]]]] = {}
    for webhook in await tx.all(WEBHOOKS, owners):
        names = _names(webhook)
        subscribed.setdefault(webhook["owner_id"], []).append((webhook, names))

    due = await lanes.due_now(tx)
    left = room.slots
    windows = dict(room.windows)
    rows: list[tuple[object, ...]] = []
    claimed: list[Claimed] = []
    ready: set[str] = set()
    created: Counter[str] = Counter()
    for number, event in enumerate(events):
        for webhook, names in subscribed.get(event["owner_id"], ()):
            if not _wants(webhook, names, event):
                continue
            webhook_id = webhook["id"]
            window = windows.get(webhook_id, FIRST_WINDOW)
            born = bool(
                left > 0
                and window > 0
                and webhook_id not in ready
                and webhook["state"] == "active"
                and not webhook["failing"]
                and webhook["open"]
            )
            delivery_id = tx.new_id()
            origin = "event" if event["webhook_id"] is None else "test"
            created[event["name"]] += 1
            rows.append(
                (
                    delivery_id, event["owner_id"], event["id"], webhook_id, origin,
                    "in_flight" if born else "ready", False, due, 0, int(born),
                    room.claim if born else None, room.node_id if born else None,
                    event["record_id"], first_seq + number, tx.now,
                )
            )  # fmt: skip
            if born:
                left -= 1
                windows[webhook_id] = window - 1
                claimed.append(_claimed(delivery_id, event, webhook_id, origin, room.claim))
            else:
                ready.add(webhook_id)
    await bulk.insert(tx, "deliveries", COLUMNS, rows, ONCE)
    await lanes.wake(tx, ready, due)
    met = Counter(event["name"] for event in events)
    return FannedOut(met, created, claimed, replace(room, slots=left, windows=windows))


def _names(webhook: Row) -> frozenset[str]:
    """The events it subscribes to. A damaged row must not stop everybody's fan-out."""
    try:
        return frozenset(json.loads(webhook["events"]))
    except (ValueError, TypeError):
        log.exception("subscription_unreadable", webhook_id=webhook["id"])
        return frozenset()


def _wants(webhook: Row, names: frozenset[str], event: Row) -> bool:
    """Whether the webhook gets the event: subscribed, and not older than the webhook itself."""
    if event["webhook_id"] is not None:
        return bool(event["webhook_id"] == webhook["id"])
    return event["pos"] > webhook["since_pos"] and event["name"] in names


def _claimed(delivery_id: str, event: Row, webhook_id: str, origin: str, claim: str) -> Claimed:
    return Claimed(
        delivery_id, event["owner_id"], event["id"], webhook_id,
        "event" if origin == "event" else "test", 0, 1, False, 0, claim, event["name"],
        event["record_version"], event["occurred_at"], event["request_id"], event["traceparent"],
        event["body"],
    )  # fmt: skip
