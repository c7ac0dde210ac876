"""Erase persons from events and attempts, in small transactions after a request for it.

The body of an event becomes null, with `erased_at`; deliveries that wait are cancelled, and none
can be replayed. Responses of its attempts are deleted too, since a receiver may repeat what it got;
their digests stay, so that the chain of attempts still verifies. A request stays open until the
deliveries in flight have been recorded.

Owners take turns, one unit of work each; requests of one owner go through it together. A request
with a unit that the database ends, because it takes too long, is put aside: it goes alone, after
the others, and its units are half as large.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import structlog

from outbox.database.pacing import JobPace
from outbox.database.transaction import DUTIES, Database
from outbox.errors import DatabaseUnavailable
from outbox.queue.upkeep import erasure_requests, personal_data
from outbox.queue.upkeep.erasure_requests import Request
from outbox.queue.upkeep.personal_data import Whose

TOGETHER = 100
"""Requests of an owner that are processed together."""
EVENTS = 100
"""Events that one transaction erases."""
BYTES = 1_048_576
"""Bytes of bodies that one transaction erases, unless a single one is larger."""
DELIVERIES = 200
"""Deliveries that one read returns."""
DELIVERIES_AT_ONCE = 50
ANSWERS_AT_ONCE = 16
"""Responses that one transaction replaces; each has up to 80 KiB."""

log = structlog.get_logger("outbox")


@dataclass(slots=True)
class _Run:
    """One run: requests that it has handled, those to handle alone, and the errors.

    `limits`: whether events from before a request are unseen, and the last place of the feed, as
    they were when the run met the request.
    """

    over: set[str] = field(default_factory=set)
    alone: set[str] = field(default_factory=set)
    errors: list[Exception] = field(default_factory=list)
    limits: dict[str, tuple[bool, int]] = field(default_factory=dict)


class Erasure:
    """Processes requests. Run one at a time; a run may be interrupted."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._pace = JobPace(db.meter, 1, clock=db.clock)

    async def any_open(self) -> bool:
        """Return whether there is a request."""
        return await self._db.read(erasure_requests.any_open)

    async def run_once(self) -> None:
        """Process all requests; those that must wait for a delivery stay.

        Requests that come meanwhile take part. A damaged one is marked and left alone. An error in
        one stops no other; it is raised at the end.
        """
        run = _Run()
        while groups := await self._groups(run):
            async with AsyncExitStack() as stack:
                turns = deque(self._guarded(run, group) for group in groups)
                for turn in turns:
                    stack.push_async_callback(turn.aclose)
                while turns:
                    turn = turns.popleft()
                    async with self._pace.step():
                        more = await anext(turn, False)
                    if more:
                        turns.append(turn)
        if run.errors:
            raise run.errors[0]

    async def _groups(self, run: _Run) -> list[list[Request]]:
        """Return the next requests of each owner."""
        groups: dict[str, list[Request]] = {}
        alone: list[list[Request]] = []
        after = ""
        while True:
            requests, damaged, after = await self._db.read(erasure_requests.next_open, after)
            for request_id, owner_id in damaged:
                await self._db.write(erasure_requests.fail, request_id)
                log.error("erasure_damaged", erasure=request_id, owner_id=owner_id)
            for request in requests:
                if (request.put_aside or request.id in run.alone) and request.id not in run.over:
                    alone.append([request])
                elif request.id not in run.over:
                    group = groups.setdefault(request.owner_id, [])
                    if len(group) < TOGETHER:
                        group.append(request)
            if not after:
                # Those that were put aside least go first.
                return [*groups.values(), *sorted(alone, key=lambda group: group[0].put_aside)]

    async def _guarded(self, run: _Run, group: list[Request]) -> AsyncGenerator[bool]:
        """Process requests of one owner; when that fails, each of them is handled alone next."""
        try:
            async for _ in self._work(run, group):
                yield True
        except Exception as error:  # noqa: BLE001 - raised at the end of the run
            if len(group) > 1:
                run.alone |= {request.id for request in group}
            elif not (
                isinstance(error, DatabaseUnavailable) and await self._put_aside(group[0].id)
            ):
                run.errors.append(error)
                run.over.add(group[0].id)

    async def _put_aside(self, request_id: str) -> bool:
        """Halve the units of a request; return False if they are as small as they get.

        Raises DatabaseUnavailable when it is not the unit that was too much.
        """
        log.warning("erasure_put_aside", erasure=request_id)
        return await self._db.write(erasure_requests.put_aside, request_id)

    async def _work(self, run: _Run, group: list[Request]) -> AsyncGenerator[None]:
        """Read the next events of these requests and erase them; yield after each unit."""
        # Read first, so that events unseen now get a later place in the order than `last`.
        unseen, last, remainder = await self._db.read(erasure_requests.limits, group[0].owner_id)
        for request in group:
            early = remainder or (unseen is not None and unseen <= request.upto_pos)
            run.limits.setdefault(request.id, (early, last))
        ends = {request.id: run.limits[request.id][1] for request in group}
        page = await self._db.scan(DUTIES, erasure_requests.look, group, ends)
        yield
        unfinished: set[str] = set()
        whose = page.counted(group)
        smallest = max(group, key=lambda request: request.put_aside)
        for chunk in chunked(page.sizes, smallest):
            await self._db.write(personal_data.erase_bodies, chunk, whose)
            yield
            async for events_left in self._deliveries(chunk, whose, smallest):
                unfinished |= events_left
                yield
        done: list[str] = []
        moved: list[tuple[str, int]] = []
        for request in group:
            if (reached := page.reached.get(request.id)) is None:
                continue
            early, end = run.limits[request.id]
            if page.events[request.id] & unfinished:
                run.over.add(request.id)
            elif reached < end or early:
                moved.append((request.id, reached))
                if reached >= end:
                    run.over.add(request.id)
            else:
                done.append(request.id)
        await self._db.write(erasure_requests.settle, done, moved)

    async def _deliveries(
        self, event_ids: Sequence[str], whose: Whose, request: Request
    ) -> AsyncGenerator[set[str]]:
        """Erase the person from the deliveries of events; yield those with one in flight."""
        at_once, answers = request.part(DELIVERIES_AT_ONCE), request.part(ANSWERS_AT_ONCE)
        place: personal_data.Place | None = personal_data.Place()
        while place is not None:
            rows, place = await self._db.scan(
                DUTIES, personal_data.deliveries, event_ids, place, request.part(DELIVERIES)
            )
            yield set()
            for start in range(0, len(rows), at_once):
                chunk = rows[start : start + at_once]
                ids = [row["id"] for row in chunk]
                if any(row["state"] in personal_data.UNFINISHED for row in chunk):
                    at = {
                        row["webhook_id"] for row in chunk if row["state"] in personal_data.WAITING
                    }
                    events_left, cancelled = await self._db.write(
                        personal_data.cancel, ids, at, whose
                    )
                    for webhook_id in cancelled.elements():
                        self._db.observer.delivery_finished(webhook_id, "cancelled", None)
                    yield events_left
                erased = answers
                while erased == answers:
                    erased = await self._db.write(personal_data.erase_answers, ids, answers, whose)
                    yield set()


def chunked(sizes: Mapping[str, int], request: Request) -> list[list[str]]:
    """Divide events into lists for one transaction each."""
    chunks: list[list[str]] = []
    room = 0
    for event_id, size in sizes.items():
        if not chunks or len(chunks[-1]) == request.part(EVENTS) or size > room:
            chunks.append([])
            room = request.part(BYTES)
        chunks[-1].append(event_id)
        room -= size
    return chunks
