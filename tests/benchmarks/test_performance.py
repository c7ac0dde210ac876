"""The page on performance shows what was measured, and the parts that measure it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import pytest

from outbox.database.transaction import Row, Tx
from tests.benchmarks import conditions as circumstances
from tests.benchmarks import product as served
from tests.benchmarks import whole_runs
from tests.benchmarks.conditions import conditions
from tests.benchmarks.growth import Point, stage
from tests.benchmarks.growth_plot import draw
from tests.benchmarks.kept_rows import DAYS
from tests.benchmarks.performance import PAGE, PLOT, grown, read
from tests.benchmarks.performance_tables import AXES, ENGINES, FIND, SECTIONS, filled, growth_points
from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.usage import used
from tests.benchmarks.whole_runs import site


def test_the_page_shows_the_figures() -> None:
    page = PAGE.read_text()
    assert page == filled(page, read())
    assert FIND.findall(page) == list(SECTIONS)
    assert SECTIONS.keys() <= BENCHMARKS.keys()


def test_the_plot_shows_the_figures(tmp_path: Path) -> None:
    draw(grown(read()), tmp_path / "growth.svg")
    assert (tmp_path / "growth.svg").read_text() == PLOT.read_text()


def test_every_table_tells_where_it_was_measured() -> None:
    for name, found in read().items():
        table = filled(f"<!-- measured: {name} -->\n<!-- end -->", {name: found})
        at = found["conditions"]
        for words in (at["date"], at["processor"], f"{at['cores']} cores", at["file_system"]):
            assert words in table, name
        assert "synchronous" in table, name
        assert ("busy with other work" in table) == (not at["quiet"]), name


def test_the_points_of_growth_are_in_the_figures() -> None:
    points = growth_points(grown(read()))
    assert {(engine, axis) for engine, axis, _ in points} == set(product(ENGINES, AXES))
    assert all(len(values) > 1 for *_, values in points)


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
