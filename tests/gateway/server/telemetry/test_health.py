"""/readyz: a write that works, asked for once a second at most, and the fault by name."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.server.telemetry import health as module
from gateway.server.telemetry.health import FRESH_SECONDS, Health
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Database
from outbox.errors import DatabaseFault, DatabaseUnavailable
from outbox.ids import Ids
from outbox.observer import Observer
from tests.support.clocks import Stopped
from tests.support.cluster import Cluster
from tests.support.databases import SOURCES
from tests.support.failing import failing
from tests.support.volume import fill, on_small_disk, tmpfs
from tests.support.waiting import until


class Drain:
    ticked = float("inf")
    found_full = float("-inf")


def health_of(db: Database, ticks: Drain | None = None) -> Health:
    return Health(db, ticks or Drain(), delivers=True)


class Writes(Observer):
    """An observer that counts writes."""

    def __init__(self) -> None:
        self.count = 0

    def transaction(self, op: str, seconds: float) -> None:
        self.count += op == "write"


async def test_those_who_ask_within_a_second_share_one_write(db: Database) -> None:
    db.clock = clock = Stopped()
    db.observer = writes = Writes()
    health = health_of(db)
    assert await asyncio.gather(*(health.faults() for _ in range(50))) == [[]] * 50
    clock.now = FRESH_SECONDS
    assert await health.faults() == []
    assert writes.count == 1
    clock.now += 0.1
    assert await health.faults() == []
    assert writes.count == 2


@pytest.mark.parametrize(
    ("kind", "told"), [("read_only", "read-only"), ("full", "disk full"), ("busy", "busy")]
)
async def test_a_database_that_takes_no_write(
    db: Database, monkeypatch: pytest.MonkeyPatch, kind: DatabaseFault, told: str
) -> None:
    failing(monkeypatch, db, "write", module._touch, DatabaseUnavailable(kind, "secret detail"))
    assert await health_of(db).faults() == [f"the database is not available ({told})"]


async def test_one_who_goes_away_takes_the_answer_from_nobody(db: Database) -> None:
    health = health_of(db)
    first = asyncio.create_task(health.faults())
    second = asyncio.create_task(health.faults())
    await asyncio.sleep(0)
    first.cancel()
    assert await second == []


@pytest.fixture
async def cramped(tmp_path: Path) -> AsyncIterator[tuple[Database, Path]]:
    """A database of a server whose tables are on a small disk."""
    with tempfile.TemporaryDirectory(prefix="carteiro-cramped-") as home:
        folder = Path(home)
        # The server's own user must reach its data.
        folder.chmod(0o755)
        cluster = Cluster(folder / "data")
        with tmpfs(folder, 32) as disk:
            try:
                await cluster.create()
                await cluster.start()
                url = await on_small_disk(cluster, disk)
                db = await database.open(url, clock=SystemClock(), ids=Ids())
                await migrate(db, SOURCES)
                yield db, disk
                await db.close()
            finally:
                await cluster.close()


@pytest.mark.proof
async def test_a_full_disk_of_a_server(cramped: tuple[Database, Path]) -> None:
    db, disk = cramped
    ticks = Drain()
    health = health_of(db, ticks)
    full = ["the database is not available (disk full)"]
    assert await health.faults() == []
    ballast = fill(disk)
    # A write that found no room makes the next probe ask for it.
    ticks.found_full = db.clock.monotonic()
    await until_faults(health, full)
    ballast.unlink()
    await until_faults(health, [])
    # Nobody writes, and it is found out all the same.
    ticks.found_full = float("-inf")
    fill(disk)
    await until_faults(health, full)


async def until_faults(health: Health, faults: list[str]) -> None:
    async def holds() -> bool:
        return await health.faults() == faults

    await until(holds)


@pytest.mark.slow
async def test_a_full_disk_although_a_small_write_succeeds(db: Database, tmp_path: Path) -> None:
    """The probe writes to another disk here, as it fits into an existing log on a full one."""
    with tmpfs(tmp_path, 4) as disk:
        file = disk / "carteiro.db"
        assert await Health(db, Drain(), delivers=False, file=file).faults() == []
        (disk / "ballast").write_bytes(bytes(3 * 2**20 + 4096))
        found = await Health(db, Drain(), delivers=False, file=file).faults()
    assert found == ["the database is not available (disk full)"]
