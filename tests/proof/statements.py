"""The line of statements: how many a write, a read and a delivery send to the database."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gateway.domain.accounts import users
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions
from gateway.records.access import Actor
from gateway.rest.body import draft_of
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.drain import drain, inbox, make, make_many, ring
from tests.support.statements import fresh, noted

TIMES = 100
MOST = {
    "sqlite": {"create": 5.0, "change": 5.0, "read": 3.0},
    "postgres": {"create": 1.0, "change": 5.0, "read": 1.0},
}
"""Statements of each, one at a time; on PostgreSQL each is a round trip."""


async def statements(seed: int) -> Outcome:
    """Count the statements of a write, a read and a delivery, one at a time and in bulk."""
    outcome = Outcome()
    server = PostgresServer()
    for engine, most in MOST.items():
        with tempfile.TemporaryDirectory(prefix="carteiro-proof-") as name, noted() as sent:
            fresh_one = SqliteFiles().fresh(Path(name)) if engine == "sqlite" else server.fresh()
            url = await fresh_one
            db = await database.open(url, clock=SystemClock(), ids=Ids(), serving=True)
            try:
                figures = await _of_records(db, sent) | await _of_deliveries(db, sent)
            finally:
                await db.close()
        outcome.figures[engine] = figures
        for what, bound in most.items():
            reason = f"{engine}: a {what} costs {figures[what]} statements, not {bound}"
            outcome.need(figures[what] <= bound, reason)
    await select(outcome, "tests/conformance/test_statements.py", at_least=11)
    return outcome


async def _of_records(db: Database, sent: list[str]) -> dict[str, float]:
    user_id = await db.write(users.add, email="a@example.com", name="Ana", password_hash="-")
    actor = Actor(user_id, "api_key")
    draft = draft_of(CONTACTS, b'{"name":"Maria","email":"maria@example.com"}', creating=True)
    made = await db.write(actions.create, actor, CONTACTS, draft)
    numbers = iter(range(10 * TIMES))

    async def change() -> None:
        other = draft_of(CONTACTS, f'{{"position":"{next(numbers)}"}}'.encode())
        await db.write(actions.change, actor, CONTACTS, made.id, other)

    def of(call: Callable[[], Awaitable[Any]]) -> Awaitable[float]:
        return _each(sent, call)

    return {
        "create": await of(lambda: db.write(actions.create, actor, CONTACTS, draft)),
        "change": await of(change),
        "read": await of(lambda: db.read(actions.read, actor, CONTACTS, made.id)),
    }


async def _each(sent: list[str], call: Callable[[], Awaitable[Any]]) -> float:
    await call()
    await fresh(sent)
    for _ in range(TIMES):
        await call()
    return len(sent) / TIMES


async def _of_deliveries(db: Database, sent: list[str]) -> dict[str, float]:
    """Count the statements and the commits of the drain for each of TIMES deliveries."""
    found: dict[str, float] = {}
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "first")
        await running.watch.until("delivery_finished")
        done = 1
        await fresh(sent)
        for number in range(TIMES):
            await db.write(make, f"record-{number}")
            done += 1
            await running.watch.until("delivery_finished", done)
        found |= _told("delivery", sent)
        await fresh(sent)
        await db.write(make_many, TIMES)
        await running.watch.until("delivery_finished", done + TIMES)
        found |= _told("delivery_in_bulk", sent)
    return found


def _told(what: str, sent: list[str]) -> dict[str, float]:
    """Return the figures; the write of the event is one of the statements."""
    kinds = Counter(text.lower() for text in sent)
    return {what: len(sent) / TIMES, f"{what}_commits": kinds["commit"] / TIMES}


LINES: dict[str, Line] = {"statements": statements}
