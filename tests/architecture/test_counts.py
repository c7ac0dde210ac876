"""What one event costs the engine in calls, by room: the figures may only fall.

A webhook without filters, brakes, numbers, thin bodies or anything else beside its URL must not pay
for these. `make counts` prints the same of a whole node, with statements, rows and hand-overs; who
raises a figure says in the commit what for.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from outbox.database.transaction import Database
from tests.architecture.tree import ROOT
from tests.support.drain import drain, inbox, make, ring

ROWS, EVENTS = 4, 10
"""The least of some rows counts: on a busy machine, more polls come in between."""
MARGIN = 1.15
"""How much a run may be above its figure: how often the loop turns in between varies."""
HERE = f"{ROOT}/"
# Python calls and C calls of one event, alone, from its write to its recorded delivery.
MOST: dict[str, dict[str, tuple[int, int]]] = {
    "sqlite": {
        "outbox": (14, 14), "outbox/database": (22, 25), "outbox/database/sqlite": (121, 87),
        "outbox/queue/drain": (75, 43), "outbox/queue/state": (52, 34), "outbox/sending": (35, 48),
        "outbox/webhooks": (4, 3), "outbox/worker": (128, 77),
    },
    "postgres": {
        "outbox": (25, 23), "outbox/database": (22, 21), "outbox/database/postgres": (173, 52),
        "outbox/events": (5, 6), "outbox/queue/drain": (34, 15), "outbox/queue/state": (15, 12),
        "outbox/sending": (35, 49), "outbox/worker": (154, 98),
    },
}  # fmt: skip


class Calls:
    """Counts calls in the rooms of the engine, by room, while it is switched on."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self._rooms: dict[str, str | None] = {}

    def __enter__(self) -> Calls:
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event in ("call", "c_call"):
            name = frame.f_code.co_filename
            if name not in self._rooms:
                inside = name.startswith(f"{HERE}outbox/")
                self._rooms[name] = name[len(HERE) :].rpartition("/")[0] if inside else None
            room = self._rooms[name]
            if room is not None:
                self.counts[room, event] += 1


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_an_event_costs_no_more_calls_than_it_did(db: Database) -> None:
    await must_not_cost_more(db)


# On a busy machine its turns wait for answers of the server, and look again meanwhile.
@pytest.mark.proof
@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_an_event_costs_no_more_calls_on_postgres(db: Database) -> None:
    await must_not_cost_more(db)


async def must_not_cost_more(db: Database) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "warm")
        await running.watch.until("delivery_finished")
        rows: list[Counter[tuple[str, str]]] = []
        for row in range(ROWS):
            with Calls() as calls:
                for number in range(row * EVENTS, (row + 1) * EVENTS):
                    await db.write(make, f"r{number}")
                    await running.watch.until("delivery_finished", number + 2)
            rows.append(calls.counts)
    most = MOST[db.engine]
    found = {one: round(min(row[one] for row in rows) / EVENTS) for one in rows[0]}
    rooms = {
        room: (found.get((room, "call"), 0), found.get((room, "c_call"), 0)) for room, _ in found
    }
    dearer = {
        room: (counts, most.get(room))
        for room, counts in rooms.items()
        if any(
            n > figure * MARGIN + 1
            for n, figure in zip(counts, most.get(room, (0, 0)), strict=True)
        )
    }
    assert dearer == {}, rooms
