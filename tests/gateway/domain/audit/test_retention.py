"""Old entries of the audit log are deleted, of each owner, in small transactions."""

from dataclasses import dataclass, field

import pytest

from gateway.domain.accounts import users
from gateway.domain.audit import audit_retention
from gateway.domain.audit.audit_retention import AuditRetention
from gateway.records import audit
from gateway.records.audit import Actor
from outbox import database
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.ids import Ids
from outbox.observer import Observer
from tests.support.clocks import Wall


@dataclass
class Told(Observer):
    """An observer that records what is purged, and which tables are swept."""

    gone: list[int] = field(default_factory=list)
    clean: list[str] = field(default_factory=list)

    def purged(self, table: str, count: int) -> None:
        assert table == "audit"
        self.gone.append(count)

    def swept(self, table: str) -> None:
        self.clean.append(table)


async def owner(db: Database, number: int) -> str:
    return await db.write(users.add, email=f"a{number}@example.com", name="A", password_hash="-")


async def note(tx: Tx, owner_id: str, count: int) -> None:
    for _ in range(count):
        audit.record(tx, Actor(owner_id, "session"), "updated", "contact", "r" * 24)


async def counts(db: Database) -> dict[str, int]:
    rows = await db.read(
        lambda tx: tx.all("select owner_id, count(*) as n from audit group by owner_id")
    )
    return {row["owner_id"]: row["n"] for row in rows}


async def test_entries_go_after_their_days(db_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_retention, "PIECE", 3)
    monkeypatch.setattr(audit_retention, "OWNERS", 2)
    clock = Wall()
    db = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    try:
        clock.offset = -100 * DAY
        # Each has one entry of its creation.
        people = [await owner(db, number) for number in range(5)]
        for person, count in zip(people, (0, 7, 2, 0, 3), strict=True):
            await db.write(note, person, count)
        clock.offset = -50 * DAY
        for person in people[:3]:
            await db.write(note, person, 4)
        clock.offset = 0
        db.observer = told = Told()
        await AuditRetention(db, days=90).run_once()
        assert await counts(db) == dict.fromkeys(people[:3], 4)
        assert (sum(told.gone), max(told.gone)) == (5 + 12, 3)
        # The rule RetentionStale reads this table by its name.
        assert told.clean == ["audit"]
        await AuditRetention(db, days=60).run_once()
        assert await counts(db) == dict.fromkeys(people[:3], 4)
        if db.engine == "postgres":
            # The due clock is that of the server: one that is ahead for a moment deletes nothing.
            clock.offset = 400 * DAY
            await AuditRetention(db, days=60).run_once()
            assert await counts(db) == dict.fromkeys(people[:3], 4)
        await AuditRetention(db, days=49).run_once()
        assert await counts(db) == {}
    finally:
        await db.close()
