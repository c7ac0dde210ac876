"""Searches records for a person, outside the transactions that change them.

A text is read once and searched once, apart from the event loop; what is found holds for one
version of the record.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts.person_erasures import Erasure
from gateway.domain.privacy import knowledge, redaction
from gateway.domain.privacy.traces import Traces
from gateway.domain.sales.orders import ORDERS
from gateway.records import store
from gateway.records.record import Record
from outbox.database.transaction import DUTIES, Database
from outbox.queue.upkeep import event_texts

Key = tuple[str, str]
"""The table and the id of a record."""
BYTES = 262_144
"""Bytes of texts that are searched for one unit, unless a single record has more."""
EVENTS = 50
"""Events of a record, and responses to them, that are searched for the person."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: texts without the person, by column, and if its events name it."""

    version: int
    changes: Mapping[str, Any]
    named: bool


async def search(db: Database, erasure: Erasure, keys: Sequence[Key]) -> dict[Key, Found]:
    """Search records for the person of an erasure, as far as BYTES go."""
    assert erasure.person is not None
    person, found, left = erasure.person, dict[Key, Found](), erasure.part(BYTES)
    traces = await asyncio.to_thread(Traces, person)
    for key in keys:
        if left <= 0:
            break
        resource = BY_TABLE[key[0]]
        row = await db.read(store.fetch, resource, key[1])
        if row is None:
            continue
        record = Record(resource, row)
        if resource is ORDERS:
            wider = knowledge.more(person, names=[record["name"]], phones=[record["phone"]])
            if wider is not person:
                person, traces = wider, await asyncio.to_thread(Traces, wider)
        changes = await asyncio.to_thread(redaction.redacted, traces, record)
        left -= redaction.size(record)
        named = redaction.announced(record, changes)
        if resource.events and resource is not ORDERS and not named:
            named, read = await _named(db, traces, record)
            left -= read
        found[key] = Found(record.version, changes, named)
    return found


async def _named(db: Database, traces: Traces, record: Record) -> tuple[bool, int]:
    """Return whether events of a record, or responses to them, name the person; and their size."""
    place: event_texts.Place | None = event_texts.Place(left=EVENTS)
    read = 0
    while place is not None:
        page = await db.scan(DUTIES, event_texts.page, record.owner_id, record.id, place, BYTES)
        place = page.after
        read += page.size
        if await asyncio.to_thread(_any_within, traces, page):
            return True, read
    return False, read


def _any_within(traces: Traces, page: event_texts.Page) -> bool:
    return any(traces.within_coded(text, close=True) for text in page.texts())
