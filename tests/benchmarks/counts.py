"""`make counts`: print what one event costs in counts, which do not vary with the machine.

python -m tests.benchmarks.counts [--engine sqlite|postgres] [--load alone|paced|full] [--places N]

For one event each: Python and C calls by room, statements, COMMITs, written rows, flushes, what
passes between threads, and waits of the event loop. `alone`: one event after the other, to one
webhook. `paced`: 200 a second over ten webhooks of ten owners. `full`: as fast as responses come,
from 32 connections to one webhook. `idle`: a node with nothing to do, in counts a minute. One JSON
line per engine and load.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncpg

from tests.benchmarks.counted_node import FILE
from tests.benchmarks.site import Place, Site, site
from tests.support.process import Serving
from tests.support.waiting import in_time

LOGGED = {
    "log_statement": "all", "logging_collector": "on", "log_directory": "log",
    "log_filename": "statements.log", "log_line_prefix": "", "log_file_mode": "0644",
}  # fmt: skip
SETTLE_SECONDS, IDLE_SECONDS = 8.0, 30.0
T = TypeVar("T")
STATEMENT = re.compile(r"^LOG:  (?:statement|execute [^:]+): +([a-z]+)", re.MULTILINE | re.I)
ROWS = """
select relname, n_tup_ins as insert, n_tup_upd as update, n_tup_del as delete
from pg_stat_user_tables
"""
FLUSHES = "select sum(fsyncs) from pg_stat_io where object = 'wal'"
"""From PostgreSQL 18 on."""


@dataclass(frozen=True)
class Load:
    """How events arrive: the words of tests.benchmarks.load."""

    events: int
    owners: int
    spec: Mapping[str, Any]


LOADS = {
    "alone": Load(100, 1, {"connections": 1, "per_second": 20.0, "seconds": 5.0}),
    "paced": Load(2000, 10, {"per_second": 200.0, "seconds": 10.0}),
    "full": Load(8000, 1, {"total": 8000}),
    "idle": Load(0, 1, {}),
}


class Counting:
    """A node that counts, and the server of its database."""

    def __init__(self, here: Site, place: Place, node: Serving, file: Path) -> None:
        self._here = here
        self._place = place
        self._node = node
        self._file = file

    async def of(self, load: Load) -> tuple[float, Counter[str]]:
        """Run the load; return the number of events, and what was counted of them all.

        Without events, return minutes.
        """
        if not load.events:
            return await self._idle()
        # First without counting: connections, prepared statements, the first look-ups.
        warm = dict(load.spec) | ({"total": 200} if "total" in load.spec else {"seconds": 1.0})
        await self._here.run(self._place, self._node, **warm)
        done, found = await self._during(self._here.run(self._place, self._node, **load.spec))
        return done.events, found

    async def _idle(self) -> tuple[float, Counter[str]]:
        """Return the minutes without an event, and what was counted."""
        await asyncio.sleep(SETTLE_SECONDS)
        _, found = await self._during(asyncio.sleep(IDLE_SECONDS))
        return IDLE_SECONDS / 60, found

    async def _during(self, work: Awaitable[T]) -> tuple[T, Counter[str]]:
        before = await self._server()
        self._node.process.send_signal(signal.SIGUSR1)
        done = await work
        self._node.process.send_signal(signal.SIGUSR2)
        await in_time(self._file.exists, 60.0)
        found = Counter(json.loads(self._file.read_text()))
        self._file.unlink()
        after = await self._server()
        after.subtract(before)
        found.update({name: value for name, value in after.items() if value > 0})
        return done, found

    async def _server(self) -> Counter[str]:
        """Return what the PostgreSQL server has counted, when its processes have told all."""
        found: Counter[str] = Counter()
        cluster = self._here.cluster
        if cluster is None:
            return found
        # Each process of the server tells its counts once a second at most, and when it is idle.
        await asyncio.sleep(1.5)
        connection = await asyncpg.connect(self._place.url)
        try:
            await connection.execute("select pg_stat_force_next_flush()")
            for row in await connection.fetch(ROWS):
                for did in ("insert", "update", "delete"):
                    found[f"rows {did} {row['relname']}"] = row[did]
            found["flushes"] = int(await connection.fetchval(FLUSHES) or 0)
        finally:
            await connection.close()
        log = (cluster.data / "log" / "statements.log").read_text(errors="replace")
        for word in STATEMENT.findall(log):
            found[f"statements {word.lower()}"] += 1
        return found


@contextmanager
def counting(here: Site, place: Place) -> Iterator[Counting]:
    """Run a node that counts, during the block."""
    file = place.folder / "counts.json"
    settings = {FILE: str(file), "CARTEIRO_EGRESS__ALLOW": f"127.0.0.1/32:{here.port}"}
    with here.node(place, module="tests.benchmarks.counted_node", **settings) as node:
        yield Counting(here, place, node, file)


def told(events: float, found: Counter[str], places: int) -> dict[str, Any]:
    """Return the counts of one event."""
    sums: dict[str, Counter[str]] = {}
    for name, value in found.items():
        kind, _, rest = name.partition(" ")
        room = rest.partition(" ")[0]
        sums.setdefault(kind, Counter())[room] += value

    def each(counts: Counter[str]) -> dict[str, float]:
        return {
            name: round(value / events, 2)
            for name, value in counts.most_common() if round(value / events, 2)
        }  # fmt: skip

    nothing: Counter[str] = Counter()
    queued = sum(v for name, v in found.items() if "'put' of '_queue.SimpleQueue'" in name)
    statements = sums.get("statements", nothing)
    answer: dict[str, Any] = {
        "calls": [round(sums[kind].total() / events, 1) for kind in ("python", "c")],
        "python": each(sums["python"]), "c": each(sums["c"]),
        "statements": round(statements.total() / events, 2), "by_word": each(statements),
        "commits": round(statements["commit"] / events, 3),
        "rows": each(sums.get("rows", nothing)),
        "flushes": round(found["flushes"] / events, 3),
        "handed_over": {
            "to threads": round(queued / events, 3),
            "to the loop": round(found["handed to loop"] / events, 3),
        },
        "waits": each(sums.get("wakes", nothing)),
    }  # fmt: skip
    if places:
        answer["tables"] = each(_of(found, "rows"))
        answer["texts"] = each(_of(found, "texts"))
        answer["callers"] = each(_of(found, "callers"))
        calls = _of(found, "python", "c")
        answer["places"] = each(Counter(dict(calls.most_common(places))))
    return answer


def _of(found: Counter[str], *kinds: str) -> Counter[str]:
    """Return the counts of some kinds; one kind is left out of their names."""
    return Counter(
        {
            name if len(kinds) > 1 else name.partition(" ")[2]: value
            for name, value in found.items() if name.partition(" ")[0] in kinds
        }
    )  # fmt: skip


async def counts(engine: str, name: str, places: int) -> dict[str, Any]:
    load = LOADS[name]
    settings = LOGGED if engine == "postgres" else {}
    async with (
        site(engine, **settings) as here,
        here.place("counts", owners=load.owners) as place,
    ):
        with counting(here, place) as node:
            return told(*await node.of(load), places)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.counts", description=__doc__)
    parser.add_argument("--engine", choices=["sqlite", "postgres"])
    parser.add_argument("--load", choices=LOADS)
    parser.add_argument(
        "--places", type=int, default=0,
        help="print so many functions with most calls, callers, and the statements",
    )  # fmt: skip
    given = parser.parse_args(words)
    for engine in [given.engine] if given.engine else ["sqlite", "postgres"]:
        for name in [given.load] if given.load else LOADS:
            found = asyncio.run(counts(engine, name, given.places))
            print(json.dumps({"engine": engine, "load": name} | found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
