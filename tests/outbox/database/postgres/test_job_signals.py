"""The job of another process is paced by what the servers of its database measure."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg

from outbox.clock import SystemClock
from outbox.database.pacing import MEASURING_REST, JobPace
from outbox.database.postgres.job_signals import servers_meter
from outbox.database.transaction import Database
from outbox.database.transfer import Place
from outbox.ids import Ids
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import put
from tests.support.waiting import until


async def writing(db: Database, names: list[str]) -> None:
    while True:
        names.append(str(len(names)))
        await db.write(put, names[-1])
        await asyncio.sleep(0)


async def step(pace: JobPace) -> None:
    async with pace.step():
        await asyncio.sleep(0)


async def test_a_job_rests_for_the_writes_of_a_server_and_for_nobody_else(
    url: str, handle: Open, tmp_path: Path
) -> None:
    server = await handle(url)
    server.listen(lambda: None)
    await until(lambda: server.moves_epoch > 0)
    clock = SystemClock()
    rests: list[float] = []
    async with servers_meter((Place(url, clock=clock, ids=Ids()),), clock) as meter:

        async def rest(seconds: float) -> None:
            rests.append(seconds)
            await asyncio.sleep(0)
            if seconds:
                await until(lambda: meter.hurts(0.0) is not None)

        pace = JobPace(meter, 1, clock=clock, sleep=rest)
        await until(lambda: _heard(pace, server))
        assert not meter.anyone, "nobody writes"
        assert set(rests) == {0.0}
        task = asyncio.create_task(writing(server, []))
        await until(lambda: _rested(pace, rests))
        # The server has never measured others without the job.
        assert MEASURING_REST in rests
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert server.meter.jobs == 1, "the job may go on"
    await server.close()
    assert server.meter.jobs == 0


async def _heard(pace: JobPace, server: Database) -> bool:
    await step(pace)
    return server.meter.jobs == 1


async def _rested(pace: JobPace, rests: list[float]) -> bool:
    await step(pace)
    return rests[-1] > 0


async def test_a_job_whose_signals_end_goes_on_alone(url: str) -> None:
    clock = SystemClock()
    connection = await asyncpg.connect(url)
    async with servers_meter((Place(url, clock=clock, ids=Ids()),), clock) as meter:
        pace = JobPace(meter, 1, clock=clock)
        await step(pace)
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        await step(pace)
        assert not meter.anyone
    await connection.close()
