"""The parts that measure whole runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from outbox.database.transaction import Row, Tx
from tests.benchmarks import conditions as circumstances
from tests.benchmarks import product as served
from tests.benchmarks import whole_runs
from tests.benchmarks.conditions import conditions
from tests.benchmarks.growth import Point, stage
from tests.benchmarks.kept_rows import DAYS
from tests.benchmarks.usage import used
from tests.benchmarks.whole_runs import site


def test_a_busy_machine_is_not_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter((5.0, 5.0, 5.0, 5.0, 5.0, 5.0 + 64 * 64))
    monkeypatch.setattr(circumstances, "machine", lambda: next(used))
    monkeypatch.setattr(circumstances, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr("os.getpriority", lambda *_: 0)
    assert conditions()["quiet"]
    monkeypatch.setattr("os.getpriority", lambda *_: 19)
    assert not conditions()["quiet"]
    monkeypatch.setattr("os.getpriority", lambda *_: 0)
    assert not conditions()["quiet"]


KEPT = """
select count(*) as n, count(distinct e.id) as ids, count(distinct e.record_id) as records,
  count(distinct e.seq) as seqs, min(e.occurred_at) as first, max(e.occurred_at) as last,
  min(o.seq) as given, max(e.seq) as most
from events e join deliveries d on d.event_id = e.id and d.seq = e.seq and d.state = 'delivered'
  and d.record_id = e.record_id and d.finished_at >= e.occurred_at
join attempts a on a.delivery_id = d.id and a.event_id = e.id, outbox_state o
"""


async def kept(tx: Tx) -> Row:
    row = await tx.one(KEPT)
    assert row is not None
    return row


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_rows_of_the_past_have_ids_and_times_of_their_own(engine: str) -> None:
    with tempfile.TemporaryDirectory(prefix="carteiro-kept-") as name:
        async with site(engine, Path(name)) as where, where.place("kept") as place:
            await stage(where, place, Point(kept=900))
            async with place.stage.opened() as db:
                row = await db.read(kept)
            assert await asyncio.to_thread(place.unfinished) == 0
    assert [row[what] for what in ("n", "ids", "records", "seqs")] == [301] * 4
    assert row["given"] == row["most"]
    days = (row["last"] - row["first"]) / 86_400_000_000
    assert DAYS - 1 < days <= DAYS


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_run_that_loses_doubles_or_refuses_is_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_runs, "PATIENCE", 3.0)
    async with site("sqlite", tmp_path) as where, where.place("run") as place:
        keys = await stage(where, place, Point(per_event=2))
        with served.product(place.stage.environment(where.receiver), place.stage.folder) as node:
            assert (await where.run(place, node, keys, 8, 2, 2)).seconds > 0
            with pytest.raises(RuntimeError, match="16 requests for 24 deliveries"):
                await where.run(place, node, keys, 8, 2, 3)
            with pytest.raises(RuntimeError, match="8 refused"):
                await where.run(place, node, ["crt_wrong"], 8, 2)
            with pytest.raises(RuntimeError, match=r"(9|1\d) requests for 8 deliveries"):
                await where.run(place, node, keys, 8, 2, 1)


START = "import subprocess, sys; subprocess.run(sys.argv[1:])"
BURN = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True); input()"


@pytest.mark.slow
def test_the_cpu_of_a_node_includes_that_of_its_processes() -> None:
    start = [sys.executable, "-c", START]
    with subprocess.Popen(
        [*start, *start, sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        running = used(process.pid, None).python
        process.communicate(b"\n")
    assert running >= 0.5
