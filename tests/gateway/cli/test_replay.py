"""`carteiro replay`: what failed goes out again, once, in its order, and nothing else."""

from __future__ import annotations

import asyncio
import signal
import sys
from argparse import Namespace
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import replay_command as command
from gateway.cli.replay_command import NotAll
from gateway.domain.webhooks import replays
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.values import dates
from gateway.server.config import Config
from gateway.server.config import Database as Settings
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.queue.drain.fanout import fan_out
from outbox.queue.replays import jobs
from outbox.queue.replays.jobs import Job
from outbox.queue.upkeep import parking
from outbox.worker.recovering import Recovering
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.drain import OWNER, add_webhook, make, ring, rows
from tests.support.log_lines import only_warnings
from tests.support.process import environment
from tests.support.tables import in_turn
from tests.support.waiting import until

HOUR = 3_600_000_000


async def run(tx: Tx, sql: str, *args: Any) -> None:
    await tx.run(sql, *args)


async def events(tx: Tx, count: int) -> None:
    for number in range(count):
        await make(tx, f"record-{number}")


@dataclass
class Past:
    """A webhook with deliveries that ended some hours ago, the oldest first."""

    db: Database
    url: str
    webhook_id: str
    ids: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    async def end(self, *ends: tuple[str, int]) -> None:
        """Make a delivery for each end, that many hours ago."""
        now = self.db.clock.wall()
        await self.db.write(events, len(ends))
        await self.db.write(fan_out, ROOM)
        rows_made = await self.db.read(
            rows,
            "select id from deliveries where state = 'in_flight' or state = 'ready' order by seq",
        )
        for (state, hours), row in zip(ends, rows_made, strict=True):
            at = now - hours * HOUR
            delivery_id = Ids().new(at)
            await self.db.write(
                run,
                "update deliveries set id = $2, state = $3, created_at = $4, finished_at = $4, "
                "claim = null, node_id = null where id = $1",
                row["id"], delivery_id, state, at,
            )  # fmt: skip
            await self.db.write(
                run, "update events set occurred_at = $2 where id = "
                "(select event_id from deliveries where id = $1)", delivery_id, at,
            )  # fmt: skip
            self.ids.append(delivery_id)

    async def replay(self, **options: Any) -> list[str]:
        """Run the command; return its lines."""
        words: dict[str, Any] = {
            "webhook": self.webhook_id, "since": None, "delivery": None, "until": None,
            "state": "failed", "rate": 1000, "dry_run": False,
        }  # fmt: skip
        self.lines = []
        config = Config(database=Settings(url=self.url))
        await command.replay(config, Namespace(**words | options), self.lines.append)
        return self.lines

    async def job(self) -> Job:
        """Return the latest job."""
        [job, *_] = await self.db.read(jobs.listed, self.webhook_id)
        return job

    async def again(self) -> list[str]:
        """Return the original of each replay, in the order in which the drain takes them."""
        originals = await self.db.read(
            rows,
            "select o.id from deliveries r join deliveries o on o.event_id = r.event_id and "
            "o.origin = 'event' where r.origin = 'replay' order by r.next_at, r.id",
        )
        return [row["id"] for row in originals]


@pytest.fixture
async def past(db: Database, db_url: str) -> AsyncIterator[Past]:
    webhook_id, _ = await add_webhook(db, ring(), "http://127.0.0.1:9/")
    yield Past(db, db_url, webhook_id)
    only_warnings()


async def test_two_runs_at_once_replay_each_delivery_once(past: Past) -> None:
    await past.end(*[("exhausted", 2)] * 40)
    await asyncio.gather(*[past.replay(since="1d") for _ in range(4)])
    assert sorted(await past.again()) == sorted(past.ids)


@pytest.mark.proof
async def test_ctrl_c_cancels_the_job_and_says_how_to_go_on(past: Past, tmp_path: Path) -> None:
    await past.end(*[("exhausted", 2)] * 30)
    command = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "replay", past.webhook_id, "--since", "1d", "--rate", "5",
        env=environment(tmp_path, CARTEIRO_DATABASE__URL=past.url), stderr=PIPE,
    )  # fmt: skip
    await until(past.again)
    command.send_signal(signal.SIGINT)
    _, told = await command.communicate()
    assert command.returncode == 130
    job = await past.job()
    assert job.state == "cancelled"
    assert len(await past.again()) == job.made < 30
    assert told.decode().endswith(
        f"carteiro: {job.made} of 30 replayed, the job is cancelled; the same command with --until "
        f"{dates.show(job.until_at)} does the rest\n"
    )
    await past.replay(since="1d", until=dates.show(job.until_at))
    assert sorted(await past.again()) == sorted(past.ids)


async def test_a_job_that_somebody_else_cancels_is_a_failure(past: Past) -> None:
    await past.end(*[("exhausted", 2)] * 30)
    command = asyncio.create_task(past.replay(since="1d", rate=1))
    await until(lambda: past.db.read(jobs.listed, past.webhook_id))
    await past.db.write(jobs.cancel, (await past.job()).id)
    with pytest.raises(NotAll, match=r"The job was cancelled\."):
        await command
    assert past.lines[0].endswith("replayed.")


async def test_selected_deliveries_are_replayed_all_or_none(past: Past) -> None:
    await past.end(("delivered", 3), ("exhausted", 2), ("exhausted", 1))
    one, two, three = past.ids
    assert await past.replay(delivery=[one, two.upper(), one]) == ["2 deliveries replayed."]
    assert sorted(await past.again()) == [one, two]
    await past.db.write(
        run, "update events set erased_at = 1, body = null where id = "
        "(select event_id from deliveries where id = $1)", three,
    )  # fmt: skip
    with pytest.raises(CannotStart, match=r"erased .* Nothing is replayed"):
        await past.replay(delivery=[one, three])
    assert sorted(await past.again()) == [one, two]
    for unknown in ("0" * 24, "x"):
        with pytest.raises(CannotStart, match=f"no delivery {unknown}"):
            await past.replay(delivery=[unknown])


async def test_what_cannot_be_replayed_is_counted(past: Past) -> None:
    await past.end(("exhausted", 3), ("exhausted", 2), ("exhausted", 1))
    await past.db.write(
        run, "update events set erased_at = 1, body = null where id = "
        "(select event_id from deliveries where id = $1)", past.ids[1],
    )  # fmt: skip
    with pytest.raises(NotAll, match=r"1 could not be replayed: their events were erased"):
        await past.replay(since="1d")
    assert past.lines == ["2 deliveries replayed."]


async def test_the_job_of_a_paused_webhook_waits_until_it_is_active(past: Past) -> None:
    await past.end(("exhausted", 1))
    await past.db.write(parking.pause, past.webhook_id)
    waits = "The webhook is paused: they wait until somebody activates it."
    assert (await past.replay(since="1d", dry_run=True)) == ["1 delivery would be replayed.", waits]
    assert (await past.replay(since="1d")) == ["0 deliveries replayed.", waits]
    await parking.activate(past.db, past.webhook_id, "all")
    await Recovering(past.db).run_once()
    assert await past.again() == past.ids
    await past.db.write(parking.pause, past.webhook_id)
    assert (await past.replay(since="10min")) == ["0 deliveries replayed."]
    assert (await past.job()).state == "done"


async def test_what_is_still_tried_is_counted_because_it_is_not_replayed(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    await past.end(("exhausted", 3), ("exhausted", 1), ("exhausted", 1))
    later = past.db.clock.wall() + HOUR
    await past.db.write(
        run, "update deliveries set state = 'ready', finished_at = null, retry = $2, next_at = $3 "
        "where id > $1", past.ids[0], True, later,
    )  # fmt: skip
    replayed, waiting = await past.replay(since="1d", dry_run=True)
    assert replayed == "1 delivery would be replayed."
    start, _, first = waiting.rpartition(" ")
    assert start == "Still to be tried by their schedule: 2, the first at"
    instant = dates.parse(first.rstrip("."))
    assert instant is not None
    assert abs(instant - later) < HOUR // 12
    monkeypatch.setattr(command, "MOST_WAITING", 2)
    assert "2 or more" in (await past.replay(since="1d"))[1]
    await past.db.write(parking.pause, past.webhook_id)
    assert len(await past.replay(since="1d", until="1min")) == 1


@in_turn(
    ("given", "says"),
    [
        ({"webhook": "0" * 24, "since": "1h"}, "there is no webhook"),
        ({"webhook": "x", "since": "1h"}, "there is no webhook x"),
        ({"since": "yesterday"}, "--since 'yesterday' must be a time such as"),
        ({"since": "1h", "until": "-1"}, "--until '-1' must be"),
        ({"since": "1h", "until": "2h"}, "--since is not before --until"),
        ({"since": "1h", "rate": 0}, "--rate must be 1 to 1000 replays a second"),
        ({"since": "1h", "rate": 1001}, "--rate must be 1 to 1000 replays a second"),
    ],
)
async def test_faults_name_their_option(past: Past, given: dict[str, Any], says: str) -> None:
    with pytest.raises(CannotStart, match=says):
        await past.replay(**given)


async def test_only_deliveries_of_the_actor(past: Past) -> None:
    await past.end(("exhausted", 1))
    with pytest.raises(Refusal, match="belongs to another user"):
        await past.db.write(replays.one, Actor("f" * 24, "system"), past.ids[0])
    with pytest.raises(Refusal, match="lacks the scope"):
        await past.db.write(replays.one, Actor(OWNER, "api_key", frozenset({"read"})), past.ids[0])
