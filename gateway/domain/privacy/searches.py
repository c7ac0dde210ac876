"""Searches records for a person, outside the transactions that change them.

A text is read once and searched once, apart from the event loop; what is found holds for one
version of the record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.catalogue import BY_TABLE
from gateway.domain.contacts.person_erasures import Erasure
from gateway.domain.privacy import knowledge, redaction
from gateway.domain.privacy.apart import apart
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


async def search(
    db: Database, erasure: Erasure, keys: Sequence[Key], most: int | None = None
) -> dict[Key, Found]:
    """Search records for the person of an erasure, as far as BYTES go.

    With `most`, those that would take more are left out; otherwise the last one may.
    """
    assert erasure.person is not None
    person, changed = erasure.person, dict[Key, Found]()
    left = erasure.part(BYTES) if most is None else most
    traces = await apart(Traces, person)
    for key in keys:
        if left <= 0:
            break
        resource = BY_TABLE[key[0]]
        row = await db.read(store.fetch, resource, key[1])
        if row is None:
            continue
        record = Record(resource, row)
        left -= redaction.size(record)
        if most is not None and left < 0:
            break
        if resource is ORDERS:
            wider = knowledge.more(person, names=[record["name"]], phones=[record["phone"]])
            if wider is not person:
                person, traces = wider, await apart(Traces, wider)
        changes = await apart(redaction.redacted, traces, record)
        named: bool | None = redaction.announced(record, changes)
        if resource.events and resource is not ORDERS and not named:
            named, read = await _named(db, traces, record, None if most is None else left)
            left -= read
        if named is not None:
            changed[key] = Found(record.version, changes, named)
    return changed


async def _named(
    db: Database, traces: Traces, record: Record, most: int | None
) -> tuple[bool | None, int]:
    """Return whether events of a record, or responses to them, name the person; and their size.

    None: they have more than `most`.
    """
    place: event_texts.Place | None = event_texts.Place(left=EVENTS)
    read = 0
    size = BYTES if most is None else min(most, BYTES)
    while place is not None:
        page = await db.scan(DUTIES, event_texts.page, record.owner_id, record.id, place, size)
        place = page.after
        read += page.size
        if most is not None and read > most:
            return None, read
        if await apart(_any_within, traces, page):
            return True, read
    return False, read


def _any_within(traces: Traces, page: event_texts.TextPage) -> bool:
    return any(traces.within_coded(text, close=True) for text in page.texts())
