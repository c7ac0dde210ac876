"""Attacks on memory: unread responses, bodies without an end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from gateway.domain.contacts.activities import ACTIVITIES
from gateway.domain.contacts.tasks import TASKS
from gateway.records import store
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.system.attacks.attack import Attack, Target

TASKS_MADE = 1_000
DESCRIPTION = 65_535
READERS = 10
SECONDS = 8.0
"""Seconds that connections stay open; by then each response is completely in memory."""
DUE = 1_764_600_000_000_000
CALENDAR = "/api/tasks/calendar?start=2025-12-01&end=2025-12-02"
FLOOD = 100
APART_SECONDS = 0.01


async def long_tasks(target: Target) -> None:
    """A calendar of 64 MB."""
    await _fill(target, _tasks)


async def long_activities(target: Target) -> None:
    """A hundred long activities."""
    await _fill(target, _activities)


async def _fill(target: Target, unit: Callable[[Tx, str], Awaitable[None]]) -> None:
    db = await database.open(target.url, clock=SystemClock(), ids=Ids())
    try:
        for _ in range(TASKS_MADE // 50):
            await db.write(unit, target.owners[0])
    finally:
        await db.close()


async def _tasks(tx: Tx, owner: str) -> None:
    for _ in range(50):
        values = {"title": "Long", "description": "x" * DESCRIPTION, "due_at": DUE,
                  "due_day": False, "priority": "low", "completed": False}  # fmt: skip
        await store.insert(tx, TASKS, owner, values)


async def _activities(tx: Tx, owner: str) -> None:
    for _ in range(5):
        values = {"type": "note", "description": "x" * DESCRIPTION, "related_id": owner,
                  "related_type": "contact", "created_by": owner}  # fmt: skip
        await store.insert(tx, ACTIVITIES, owner, values)


async def slow_calendars(target: Target) -> int:
    """Let ten clients request the calendar, read a little of it, and then no more."""
    return await _unread(target, f"GET {CALENDAR}", READERS)


async def many_calendars(target: Target) -> int:
    """Let a hundred clients of one key request it and read nothing."""
    return await _unread(target, f"GET {CALENDAR}", FLOOD)


async def unread_lists(target: Target) -> int:
    """Request pages of a hundred long tasks, and read none."""
    return await _unread(target, "GET /api/tasks?limit=100", FLOOD)


async def unread_activities(target: Target) -> int:
    """Request the latest hundred activities, all long, and read none."""
    return await _unread(target, "GET /api/activities/recent?limit=100", FLOOD)


async def slow_bodies(target: Target) -> int:
    """Send bodies of a megabyte without their last byte."""
    head = "Content-Type: application/json\r\nContent-Length: 1000000\r\n"
    return await _unread(target, "POST /api/contacts", 180, head, b"x" * 999_999)


async def anonymous_bodies(target: Target) -> int:
    """Send bodies without an end and without credentials to every door."""
    kind = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 65000\r\n"
    line = "POST /console/sign-in"
    return await _unread(target, line, 400, kind, b"x" * 64_999, key=False)


async def endless_heads(target: Target) -> int:
    """Send heads of a megabyte without an end, in lines of 8 KB."""
    lines = "".join(f"X-Line-{n}: {'x' * 8_000}\r\n" for n in range(120))
    return await _unread(target, "GET /api/contacts", 400, lines, None, key=False)


async def _unread(
    target: Target,
    line: str,
    times: int,
    head: str = "",
    body: bytes | None = b"",
    *,
    key: bool = True,
) -> int:
    who = f"X-API-Key: {target.keys[0]}\r\n" if key else ""
    sent = f"{line} HTTP/1.1\r\nHost: a\r\n{who}{head}".encode()
    return await _hold(target, sent if body is None else sent + b"\r\n" + body, times)


async def _hold(target: Target, sent: bytes, times: int) -> int:
    """Send the same on many connections, read a little of the responses, and wait."""
    writers = []
    for _ in range(times):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=4_096)
        except OSError:
            continue
        writers.append(writer)
        writer.write(sent)
        # The measurement covers their memory, not their simultaneous arrival.
        await asyncio.sleep(APART_SECONDS)
    await asyncio.sleep(SECONDS)
    for writer in writers:
        writer.transport.abort()
    with contextlib.suppress(OSError):
        await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)
    return times


ATTACKS = (
    Attack("ten slow readers of a calendar", slow_calendars, fill=long_tasks),
    Attack("calendars that nobody reads", many_calendars, fill=long_tasks),
    Attack("lists that nobody reads", unread_lists, fill=long_tasks),
    Attack("latest activities that nobody reads", unread_activities, fill=long_activities),
    Attack("bodies that do not end", slow_bodies),
    Attack("anonymous bodies that do not end", anonymous_bodies),
    Attack("heads that do not end", endless_heads),
)
