"""Report what became of a webhook to its owner: events for operational webhooks, and notices.

A report is written in the transaction of its change, so both are committed or neither. No event is
about an operational webhook, because each event could then cause another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.durations import SECOND
from outbox.events import enqueue
from outbox.queue.state import notices
from outbox.queue.state.circuits import Transition
from outbox.queue.state.claimed_deliveries import Result
from outbox.queue.state.notices import Kind
from outbox.states import Change
from outbox.webhooks import subscription
from outbox.webhooks.operational import Name

KINDS: Mapping[Change, Kind] = {"open": "failing", "closed": "recovered", "disabled": "disabled"}
NAMES: Mapping[Kind, Name] = {
    "failing": "endpoint.failing",
    "disabled": "endpoint.disabled",
    "recovered": "endpoint.recovered",
}
ACTIVATED = "activated"
"""The reason of a recovery by the owner."""

MOST_RECORDS = 100
"""Ids of records that the event about an erased person names."""
ABOUT = "owner_id, url, description, operational, told"
COUNT = f"""
update webhooks set told = told + 1 where id = $1
returning id, state, failures, failing_since, last_success_at, last_outcome, last_status, {ABOUT}
"""
WEBHOOKS = f"select id, {ABOUT} from webhooks where id in {IDS} and not operational"
SUBSCRIBERS = f"""
select id, owner_id, events from webhooks where operational and owner_id in {IDS} order by id
"""
RECORDS = f"select id, record_id, created_at from deliveries where id in {IDS}"


def activated(webhook_id: str, owner_id: str) -> Transition:
    """Return the transition of a webhook in trouble that its owner activates."""
    return Transition(webhook_id, owner_id, "closed", ACTIVATED, None)


async def tell(tx: Tx, transitions: Sequence[Transition], settled: Iterable[Result] = ()) -> None:
    """Report transitions, in their order, and the deliveries in `settled` that were given up.

    The caller has locked the lanes of these webhooks. The owner gets no mail of an activation.
    """
    exhausted = [
        result
        for result in settled
        if result.decision.state == "exhausted" and result.delivery.origin != "test"
    ]
    if not transitions and not exhausted:
        return
    reports: list[tuple[Kind, str, Row]] = []
    for transition in transitions:
        kind = KINDS[transition.to]
        row = await tx.one(COUNT, transition.webhook_id)
        # A late success at a disabled webhook: nothing is sent until somebody activates it.
        if row is None or (kind == "recovered" and row["state"] == "disabled"):
            continue
        reason = transition.reason
        if kind == "recovered" and reason != ACTIVATED:
            # A later attempt of the same batch may have failed.
            reason = "success"
        reports.append((kind, reason, row))
        if reason != ACTIVATED:
            await notices.add(tx, row["owner_id"], row["id"], kind, reason)
    owners = {row["owner_id"] for _, _, row in reports}
    owners |= {result.delivery.owner_id for result in exhausted}
    listeners = await _listeners(tx, owners)
    if not listeners:
        return
    for kind, reason, row in reports:
        if not row["operational"]:
            data = endpoint(row, reason)
            _announce(
                tx, listeners, row, NAMES[kind], data, record_id=row["id"], version=row["told"]
            )
    await _tell_given_up(tx, listeners, exhausted)


def endpoint(webhook: Mapping[str, Any] | Row, reason: str) -> dict[str, Any]:
    """Return the `data` of an event about a webhook; its URL comes without its query."""
    return {
        "id": webhook["id"],
        "url": bare(webhook["url"]),
        "description": webhook["description"],
        "state": webhook["state"],
        "reason": reason,
        "failures": webhook["failures"],
        "failingSince": instant(webhook["failing_since"]),
        "lastSuccessAt": instant(webhook["last_success_at"]),
        "lastOutcome": webhook["last_outcome"],
        "lastStatus": webhook["last_status"],
    }


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A delivery that was given up. Times are in microseconds UTC."""

    delivery_id: str
    webhook_id: str
    url: str
    description: str | None
    event_id: str
    event: str
    record_id: str
    attempts: int
    outcome: str | None
    status: int | None
    created_at: int
    finished_at: int

    def data(self) -> dict[str, Any]:
        """Return the `data` of the event about it."""
        return {
            "id": self.delivery_id,
            "webhookId": self.webhook_id,
            "url": bare(self.url),
            "description": self.description,
            "eventId": self.event_id,
            "event": self.event,
            "recordId": self.record_id,
            "attempts": self.attempts,
            "lastOutcome": self.outcome,
            "lastStatus": self.status,
            "createdAt": instant(self.created_at),
            "exhaustedAt": instant(self.finished_at),
        }


async def person_erased(
    tx: Tx, owner_id: str, erasure_id: str, record_ids: Sequence[str], requested_at: int
) -> None:
    """Report that a person is erased, to each operational webhook that subscribes to it."""
    name: Name = "person.erased"
    data = erased(erasure_id, record_ids, requested_at, tx.now)
    for listener in (await _listeners(tx, [owner_id])).get((owner_id, name), ()):
        # With `about_id` it is no test event.
        enqueue(
            tx, owner_id=owner_id, name=name, record_id=erasure_id, record_version=1, data=data,
            webhook_id=listener, about_id=erasure_id,
        )  # fmt: skip


def erased(
    erasure_id: str, record_ids: Sequence[str], requested_at: int, completed_at: int
) -> dict[str, Any]:
    """Return the `data` of an event about an erased person, without personal data."""
    return {
        "id": erasure_id,
        "recordIds": list(record_ids[:MOST_RECORDS]),
        "requestedAt": instant(requested_at),
        "erasedAt": instant(completed_at),
    }


def bare(url: str) -> str:
    """Return a URL without its query, which may hold a secret; nothing of a damaged one."""
    try:
        return urlunsplit(urlsplit(url)._replace(query="", fragment=""))
    except ValueError:
        return ""


def instant(micros: int | None) -> str | None:
    """Return a time as the events of records write it: in UTC, with milliseconds."""
    if micros is None:
        return None
    seconds, rest = divmod(micros, SECOND)
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest // 1000:03d}Z"


async def _listeners(tx: Tx, owners: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Return the operational webhooks by owner and event."""
    listeners: dict[tuple[str, str], list[str]] = {}
    for row in await tx.all(SUBSCRIBERS, items(sorted(owners))):
        for name in subscription(row["events"]) or ():
            listeners.setdefault((row["owner_id"], name), []).append(row["id"])
    return listeners


async def _tell_given_up(
    tx: Tx, listeners: Mapping[tuple[str, str], Sequence[str]], results: Sequence[Result]
) -> None:
    name: Name = "delivery.exhausted"
    exhausted = [result for result in results if (result.delivery.owner_id, name) in listeners]
    if not exhausted:
        return
    rows = await tx.all(
        WEBHOOKS, items(sorted({result.delivery.webhook_id for result in exhausted}))
    )
    webhooks = {row["id"]: row for row in rows}
    rows = await tx.all(RECORDS, items([result.delivery.id for result in exhausted]))
    records = {row["id"]: row for row in rows}
    for result in exhausted:
        delivery = result.delivery
        webhook, record = webhooks.get(delivery.webhook_id), records.get(delivery.id)
        if webhook is None or record is None:
            continue
        given_up = GivenUp(
            delivery_id=delivery.id, webhook_id=delivery.webhook_id, url=webhook["url"],
            description=webhook["description"], event_id=delivery.event.id,
            event=delivery.event.name, record_id=record["record_id"],
            attempts=delivery.attempt.number,
            outcome=result.outcome.outcome if result.outcome else None,
            status=result.outcome.status if result.outcome else None,
            created_at=record["created_at"], finished_at=tx.now,
        )  # fmt: skip
        data = given_up.data()
        _announce(tx, listeners, webhook, name, data, record_id=delivery.id, version=1)


def _announce(
    tx: Tx,
    listeners: Mapping[tuple[str, str], Sequence[str]],
    webhook: Row,
    name: Name,
    data: Mapping[str, Any],
    *,
    record_id: str,
    version: int,
) -> None:
    """Write one event for each operational webhook that subscribes to it."""
    for listener in listeners.get((webhook["owner_id"], name), ()):
        enqueue(
            tx, owner_id=webhook["owner_id"], name=name, record_id=record_id,
            record_version=version, data=data, webhook_id=listener, about_id=webhook["id"],
        )  # fmt: skip
