"""Many receivers that hang or respond late, and their effect on the others (R8).

A database has 10,000 webhooks, fifty per owner, and a program that embeds the engine writes events
at a steady pace, spread evenly over them. Times run from the start of a write's transaction to its
arrival at a receiver that is well. Phases follow each other and add to each other:

- `none`: all receivers are well.
- `onset`: 2,000 webhooks of eight more owners begin to hang within a second.
- `hanging`: 30 of the fifty of each owner hang.
- `late`: fifty webhooks of one more owner, quick until now, answer after 28 s; and one receiver
  answers after 2 s, and gets 20 events a second.
- `restarted`: the program is killed in the onset of 2,000 more, and starts again.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import uvloop

from gateway.cli.serve import tune_interpreter
from gateway.server.telemetry import logs
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from outbox.worker import WorkerSettings
from tests.benchmarks.children import Child
from tests.benchmarks.figures import Size, Verdict, quantile, rounded
from tests.benchmarks.receiver import arrivals, told
from tests.benchmarks.site import Place, Site, site
from tests.support.drain import add_webhook, make, worker_for
from tests.support.waiting import in_time

WEBHOOKS, PER_OWNER, HANGING = 10_000, 50, 0.6
STORM_OWNERS, STORM_EACH = 8, 250
A_SECOND = {"well": 200.0, "slow": 20.0, "late": 4.0}
SECONDS = 25.0
OPENING = 360
"""Events that open the windows of the late owner: together beyond the slots of a worker."""
WITHIN_MS, OF_NONE, MOST_WAITING = 1_000.0, 1.5, 60
SETTLE_SECONDS = 10.0
SPREAD = 37
"""Coprime to the number of webhooks, so that no order of ids or lanes separates those that hang."""


async def hanging(size: Size) -> Verdict:
    """Judge the p99 of the receivers that are well in each phase."""
    verdict = Verdict("hanging")
    for engine in size.engines:
        async with site(engine) as here, here.place("hanging", owners=0) as place:
            town, none = _Town(here, place, size), 0.0
            async for phase, took in town.phases():
                p99 = quantile(took, 0.99)
                none = none or p99
                verdict.figures[f"{engine}_{phase}_p50_ms"] = rounded(quantile(took, 0.5))
                verdict.at_most(f"{engine}_{phase}_p99_ms", p99, WITHIN_MS)
                if phase in ("hanging", "late"):
                    verdict.at_most(f"{engine}_{phase}_of_none", p99 / none, OF_NONE)
            verdict.at_most(f"{engine}_waiting", town.most_waiting, MOST_WAITING)
    return verdict


class _Town:
    """All webhooks, and the program that writes and sends."""

    def __init__(self, here: Site, place: Place, size: Size) -> None:
        self._here, self._place, self._size = here, place, size
        self._count = size.count(WEBHOOKS, least=2 * PER_OWNER)
        self._seconds = size.seconds(SECONDS)
        # In a small run no webhook gets more than it would in a large one.
        self._pace = A_SECOND | {"well": min(A_SECOND["well"], self._count / 5)}
        self._next = self._waiting = 0
        self.most_waiting = 0
        """Events for the slow receiver that had not reached it at the end of a load."""
        self._began, self._took = 0, dict[str, float]()

    def _webhooks(self) -> Iterator[tuple[str, str, str]]:
        """Return the owner, the path and the own event of each."""
        for number in range(self._count):
            kind = "well" if self._is_well(number) else "turn/hang/0"
            yield owner(number // PER_OWNER), f"{kind}/{number}", f"n{number % PER_OWNER}.made"
        for which in ("first", "second"):
            for number in range(STORM_OWNERS * self._size.count(STORM_EACH, least=5)):
                of = owner(number % STORM_OWNERS, which)
                yield of, f"turn/{which}/0/{number}", "hangs.made"
        for number in range(PER_OWNER):
            yield owner(0, "late"), f"turn/late/28000/{number}", "late.made"
        yield owner(0, "slow"), "after/2000/slow", "slow.made"

    def _is_well(self, number: int) -> bool:
        return number * SPREAD % self._count >= self._count * HANGING

    async def phases(self) -> AsyncIterator[tuple[str, list[float]]]:
        """Create the webhooks, run each phase, and return its name and its milliseconds."""
        hooks, url = list(self._webhooks()), f"http://127.0.0.1:{self._here.port}"
        ring = read_key_file(self._place.tenants.key_file, Ids())
        db = await database.open(self._place.url, clock=SystemClock(), ids=Ids())
        for of, path, event in hooks:
            events = (event,) if event == "slow.made" else (event, "all.made")
            patience = 30_000 if event == "late.made" else None
            await add_webhook(db, ring, f"{url}/{path}", *events, owner=of, timeout_ms=patience)
        await db.close()
        owners, opening = {of for of, _, _ in hooks}, self._size.count(OPENING)
        host = await self._started()
        try:
            self._tell("all.made", *owners)
            self._tell("late.made", *[owner(0, "late")] * opening)
            if not await self._here.arrived(len(hooks) - 1 + opening * PER_OWNER):
                raise RuntimeError("the first events have not all arrived")
            yield "none", await self._measured()
            self._storm("first")
            yield "onset", await self._measured()
            told(self._here.port, "turn/hang")
            self._tell("all.made", *owners)
            # All that hang need a slot for a second at once: the others wait in that queue.
            await self._load(self._seconds)
            yield "hanging", await self._measured()
            told(self._here.port, "turn/late")
            self._tell("late.made", *[owner(0, "late")] * self._size.count(40))
            await self._load(2 * self._seconds, ("slow", "late"))
            yield "late", await self._measured(("slow", "late"))
            self._storm("second")
            await self._load(1.0)
            self._host.close()
            host.close()
            host = await self._started()
            yield "restarted", await self._measured()
        finally:
            self._host.close()
            host.close()

    async def _started(self) -> Child:
        spec = {"url": self._place.url, "key_file": str(self._place.tenants.key_file)}
        host = Child("tests.benchmarks.hanging", log=self._here.log, spec=spec)
        _, self._host = await asyncio.open_connection("127.0.0.1", host.json()["port"])
        return host

    def _tell(self, event: str, *owners: str) -> None:
        """Write an event of each owner."""
        self._host.write("".join(f"{of} {event}\n" for of in owners).encode())

    def _storm(self, which: str) -> None:
        told(self._here.port, f"turn/{which}")
        self._tell("hangs.made", *[owner(number, which) for number in range(STORM_OWNERS)] * 2)

    async def _load(self, seconds: float, also: tuple[str, ...] = ()) -> int:
        """Write at a steady pace; return how many events were for receivers that are well."""
        loop, pace = asyncio.get_running_loop(), self._pace["well"]
        began, well, others = loop.time(), 0, dict.fromkeys(also, 0)
        for turn in range(max(round(seconds * pace), 1)):
            await asyncio.sleep(began + turn / pace - loop.time())
            number = self._next = (self._next + SPREAD) % self._count
            self._tell(f"n{number % PER_OWNER}.made", owner(number // PER_OWNER))
            well += self._is_well(number)
            for kind, count in others.items():
                if turn * self._pace[kind] >= count * pace:
                    self._tell(f"{kind}.made", owner(0, kind))
                    others[kind] += 1
        self._waiting += others.get("slow", 0)
        return well

    def _look(self) -> int:
        """Note what has arrived since the last look; return how many measured events have."""
        for path, event, at in arrivals(self._here.port):
            # An event's id begins with the milliseconds of its transaction's start.
            made = int(event[:12], 16)
            if path.startswith("/well/") and made >= self._began:
                self._took.setdefault(event, at / 1000 - made)
            self._waiting -= path.startswith("/after/")
        return len(self._took)

    async def _measured(self, also: tuple[str, ...] = ()) -> list[float]:
        """Return the milliseconds of all events of one load for receivers that are well."""
        self._look()
        self._began, self._took = time.time_ns() // 1_000_000, {}
        written = await self._load(self._seconds, also)
        self._look()
        self.most_waiting = max(self.most_waiting, self._waiting)
        await in_time(lambda: self._look() >= written, SETTLE_SECONDS)
        # Missing ones count with the time that this run waited.
        return [*self._took.values()] + [SETTLE_SECONDS * 1_000] * (written - len(self._took))


def owner(number: int, kind: str = "well") -> str:
    return f"{kind.encode().hex():0>12}{number:012x}"


async def main() -> None:
    """Write and drain events: each line on a port (`owner event`) is one transaction."""
    spec, usual = json.load(sys.stdin), WorkerSettings()
    clock, ids = SystemClock(), Ids()
    logs.configure("error", clock=clock, node="host", version="0")
    tune_interpreter()
    db = await database.open(spec["url"], clock=clock, ids=ids, serving=True)
    ring = read_key_file(Path(spec["key_file"]), ids)
    worker, _ = worker_for(db, ring, schedule=usual.schedule, timeout=usual.timeout)
    running, writes = asyncio.create_task(worker.run()), set[asyncio.Task[str]]()

    async def take(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        async for line in reader:
            of, event = line.decode().split()
            writes.add(task := asyncio.create_task(db.write(make, "record", event, of)))
            task.add_done_callback(writes.discard)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await running


if __name__ == "__main__":
    uvloop.run(main())
