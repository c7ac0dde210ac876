"""How many statements a write and a read cost: on PostgreSQL each is a round trip."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from gateway.domain.accounts import users
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.sales import deals
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import check
from outbox import database
from outbox.database.postgres.hosts import Hosts, Session
from outbox.database.sqlite.file import File
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from tests.support.clocks import Stopped
from tests.support.waiting import HANG_SECONDS

TURN = ContextVar("TURN", default=0)
"""Counts how often a test began to note anew; tasks that run on have the number of their start."""


class Sent(str):
    """A statement, and the turn of the task that sent it; None for a file."""

    turn: int | None

    def __new__(cls, text: str, turn: int | None) -> Sent:
        sent = super().__new__(cls, text.strip())
        sent.turn = turn
        return sent


def own(sent: list[Sent]) -> list[Sent]:
    """Return what was sent since `fresh`, without what an earlier write still tells others."""
    return [text for text in sent if text.turn in (None, TURN.get())]


@contextmanager
def noted() -> Iterator[list[Sent]]:
    """Note the statements of databases that are opened in the block; each is a round trip."""
    sent: list[Sent] = []
    hosts_connect, file_connect = Hosts.connect, File.connect

    async def connect(self: Hosts, *words: object, **options: Any) -> Any:
        connection = await hosts_connect(self, *words, **options)
        # Signals have a connection outside the pool. For asyncpg, any connection is an instance.
        if type(connection) is Session:
            connection.add_query_logger(lambda query: sent.append(Sent(query.query, TURN.get())))
        return connection

    def opened(self: File, writable: bool = True) -> sqlite3.Connection:
        connection = file_connect(self, writable)
        connection.set_trace_callback(lambda text: sent.append(Sent(text, None)))
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Hosts, "connect", connect)
        patch.setattr(File, "connect", opened)
        yield sent


async def fresh(sent: list[Sent]) -> None:
    """Forget what was noted; asyncpg calls its loggers a turn of the loop later."""
    await asyncio.sleep(0)
    TURN.set(TURN.get() + 1)
    sent.clear()


def heads(sent: list[Sent]) -> list[str]:
    """Return the beginning of each statement, up to the name of its table."""
    return [" ".join(text.lower().split("(")[0].split()[:3]) for text in sent]


WRITES = 32


@pytest.fixture
async def opened(db_url: str) -> AsyncIterator[tuple[Database, list[Sent]]]:
    """A database, and what was sent to it."""
    with noted() as sent:
        # A busy machine must leave no read to a thread, which begins it again.
        db = await database.open(db_url, clock=Stopped(), ids=Ids(), serving=True)
        yield db, sent
        await db.close()


async def owner(db: Database) -> Actor:
    user_id = await db.write(users.add, email="a@example.com", name="Ana", password_hash="-")
    return Actor(user_id, "api_key")


def create(db: Database, actor: Actor) -> Any:
    draft = check(CONTACTS, {"name": "Maria", "email": "maria@example.com"}, creating=True)
    return db.write(actions.create, actor, CONTACTS, draft)


async def test_a_create_is_one_statement_on_postgres(opened: tuple[Database, list[Sent]]) -> None:
    db, sent = opened
    actor = await owner(db)
    await create(db, actor)
    await fresh(sent)
    await create(db, actor)
    await asyncio.sleep(0)
    if db.engine == "postgres":
        [statement] = own(sent)
        for table in ("contacts", "tallies", "audit", "events"):
            assert f"insert into {table} " in statement
    else:
        assert heads(sent) == [
            "begin immediate", "insert into contacts", "insert into tallies", "insert into audit",
            "insert into events", "commit",
        ]  # fmt: skip


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_concurrent_creates_share_their_statements(db_url: str) -> None:
    """Apart they are four inserts each; on a clock that stands still no batch ends by its time."""
    gate = threading.Event()

    async def hold(tx: Tx) -> None:
        gate.wait(HANG_SECONDS)

    with noted() as sent:
        db = await database.open(db_url, clock=Stopped(), ids=Ids(), serving=True)
        actor = await owner(db)
        holding = asyncio.create_task(db.write(hold))
        creating = [asyncio.create_task(create(db, actor)) for _ in range(WRITES)]
        await fresh(sent)
        gate.set()
        await asyncio.gather(holding, *creating)
        await db.close()
    # The totals are spread over several rows.
    inserts = [head for head in heads(sent) if head.startswith("insert")]
    assert heads(sent).count("commit") == 1
    assert len([head for head in inserts if "tallies" not in head]) == 3


async def test_a_read_by_id_is_one_statement_on_postgres(
    opened: tuple[Database, list[Sent]],
) -> None:
    db, sent = opened
    actor = await owner(db)
    made = await create(db, actor)
    await db.read(actions.read, actor, CONTACTS, made.id)
    await fresh(sent)
    await db.read(actions.read, actor, CONTACTS, made.id)
    await asyncio.sleep(0)
    expected = ["select"] if db.engine == "postgres" else ["begin", "select", "rollback"]
    assert [text.split()[0].lower() for text in own(sent)] == expected


async def test_a_change_writes_everything_after_its_query_with_two_statements(
    opened: tuple[Database, list[Sent]],
) -> None:
    db, sent = opened
    actor = await owner(db)
    made = await create(db, actor)
    # The first write of a connection to PostgreSQL also asks for the types of arrays.
    draft = check(CONTACTS, {"position": "Trainee"}, creating=False)
    await db.write(actions.change, actor, CONTACTS, made.id, draft)
    draft = check(CONTACTS, {"position": "Buyer"}, creating=False)
    await fresh(sent)
    await db.write(actions.change, actor, CONTACTS, made.id, draft)
    await asyncio.sleep(0)
    words = [text.split()[0].lower() for text in own(sent)]
    # Of the audit log and of the event: PostgreSQL takes both with one statement.
    last = ["with"] if db.engine == "postgres" else ["insert", "insert"]
    assert words == ["begin", "select", "update", *last, "commit"]


async def test_a_record_that_refers_to_another_is_written_with_one_statement(
    opened: tuple[Database, list[Sent]],
) -> None:
    db, sent = opened
    actor = await owner(db)
    made = await create(db, actor)
    body = {"title": "Deal", "value": 1, "contactIds": [made.id]}

    def deal() -> Any:
        draft = check(deals.DEALS, body, creating=True)
        return db.write(actions.create, actor, deals.DEALS, draft)

    await deal()
    await fresh(sent)
    await deal()
    await asyncio.sleep(0)
    words = [text.split()[0].lower() for text in own(sent)]
    if db.engine == "postgres":
        assert words == ["begin", "select", "with", "commit"]
    else:
        # The trigger that counts the deals of a stage is told of too.
        assert [w for w in words if w != "--"] == ["begin", "select", *["insert"] * 7, "commit"]


async def test_a_unit_that_asks_twice_has_one_snapshot_from_its_first_query(
    opened: tuple[Database, list[Sent]],
) -> None:
    """The driver expects one query of it, learns that there are two, and starts it again."""
    db, sent = opened
    calls = []

    async def twice(tx: Tx) -> None:
        calls.append(tx)
        await tx.one("select 1 as one")
        await tx.one("select 2 as two")

    await db.read(twice)
    await db.read(twice)
    await asyncio.sleep(0)
    assert len(calls) == (3 if db.engine == "postgres" else 2)
    if db.engine == "postgres":
        words = [" ".join(text.split()[:2]).lower() for text in sent]
        again = ["begin isolation", "select 1", "select 2", "commit"]
        assert words[-9:] == ["select 1", *again, *again]
