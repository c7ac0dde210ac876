"""Many webhooks begin to hang within a second: their effect on the healthy ones beside them (R8).

In `owners`, eight owners have 250 webhooks each that begin to hang, with two events each, and a
ninth owner has twenty healthy ones. In `own`, 100 hanging webhooks and twenty healthy ones belong
to one owner. Times run from the start of a write's transaction to the 200 of its receiver. Each
case runs twice on each engine: measured from the onset on, and once more with the process killed in
the middle of the onset, measured from its restart on.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.webhooks.secrets import KeyRing
from tests.benchmarks.children import Child, child
from tests.benchmarks.engines import fresh
from tests.benchmarks.figures import Verdict, in_ms, quantile
from tests.benchmarks.hanging import Write, ask, lines, now_ms
from tests.benchmarks.idle_commit import arrivals
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage

OWNERS = 8
OF_OWNERS = 2_000
OF_ONE = 100
HEALTHY = 20
EVENTS_EACH = 2
ONSET_SECONDS = 1.0
A_SECOND = 40.0
"""Events for the healthy webhooks."""
WITHIN_MS = 1_000.0
SETTLE_SECONDS = 15.0
WARM_SECONDS = 60.0
HANGS, WARMS = "hangs.made", "warms.made"


@dataclass(frozen=True)
class Case:
    """How many webhooks hang, of how many owners, and who has the healthy ones."""

    name: str
    hanging: int
    owners: int
    healthy_owner: str

    def owned(self) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
        """Return the paths and the events of each owner's webhooks, mixed."""
        found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for rank in range(self.hanging):
            found.setdefault(owner(rank % self.owners), []).append((f"rank/{rank}", (HANGS, WARMS)))
        mine = found.setdefault(self.healthy_owner, [])
        step = max(len(mine) // HEALTHY, 1)
        for number in range(HEALTHY):
            events = (WARMS, f"n{number}.made")
            mine.insert(number * (step + 1), (f"rank/{self.hanging + number}", events))
        return found


async def onset(size: Size) -> Verdict:
    """Judge the p99 of the healthy webhooks in both cases, from the onset and from a restart on."""
    verdict = Verdict("onset")
    hanging = min(OF_OWNERS, size.webhooks // 5)
    cases = (
        Case("owners", hanging, OWNERS, owner(OWNERS)),
        Case("own", min(OF_ONE, hanging), 1, owner(0)),
    )
    for engine in size.engines:
        for case in cases:
            for killed in (False, True):
                with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name:
                    folder = Path(name)
                    log = folder / "children.log"
                    with child("tests.benchmarks.receiver", "record", log=log) as receiver:
                        async with fresh(engine, folder) as stage:
                            site = _Site(stage, folder, receiver.json()["port"], case, size)
                            waits = await site.run(killed)
                phase = f"{engine}_{case.name}_{'restarted' if killed else 'onset'}"
                verdict.figures[f"{phase}_p50_ms"] = in_ms(quantile(waits, 0.5))
                verdict.figures[f"{phase}_max_ms"] = in_ms(max(waits))
                verdict.at_most(f"{phase}_p99_ms", in_ms(quantile(waits, 0.99)), WITHIN_MS)
    return verdict


class _Site:
    """The webhooks of one case in an empty database, and their receiver."""

    def __init__(self, stage: Stage, folder: Path, port: int, case: Case, size: Size) -> None:
        self._stage = stage
        self._folder = folder
        self._port = port
        self._case = case
        self._seconds = size.hanging_seconds * 0.4
        self._next = 0

    async def run(self, killed: bool) -> list[int]:
        """Return the times of the healthy events, in microseconds, from the onset or a restart."""
        await self._stage.prepare()
        ring = self._stage.ring()
        owned = self._case.owned()
        async with self._stage.opened() as db:
            for owner_id, drafts in owned.items():
                await db.write(_settle_in, owner_id, self._url(), drafts, ring)
        running = self._started()
        try:
            async with lines(running) as write:
                # All webhooks have answered quickly, a moment before.
                for owner_id in owned:
                    write(owner_id, WARMS)
                await self._until(sum(map(len, owned.values())))
                await self._ask(f"hang/{self._case.hanging}")
                await self._report()
                began = now_ms()
                onset = asyncio.create_task(self._onset(write))
                try:
                    seconds = ONSET_SECONDS if killed else self._seconds
                    written = await self._load(write, seconds)
                finally:
                    await onset
                if not killed:
                    return await self._waits(began, written)
            running.kill()
            running = self._started()
            await self._report()
            async with lines(running) as write:
                began = now_ms()
                return await self._waits(began, await self._load(write, self._seconds))
        finally:
            running.kill()

    async def _onset(self, write: Write) -> None:
        """Write the events of the webhooks that hang, within a second."""
        count = EVENTS_EACH * self._case.owners
        for number in range(count):
            write(owner(number % self._case.owners), HANGS)
            await asyncio.sleep(ONSET_SECONDS / count)

    async def _load(self, write: Write, seconds: float) -> int:
        """Write events for the healthy webhooks at a steady pace; return how many."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        count = max(round(seconds * A_SECOND), 1)
        for number in range(count):
            await asyncio.sleep(began + number / A_SECOND - loop.time())
            write(self._case.healthy_owner, f"n{self._next % HEALTHY}.made")
            self._next += 1
        return count

    async def _waits(self, began: int, written: int) -> list[int]:
        """Wait for the events written since `began`; missing ones count as the time waited."""
        mine: dict[str, int] = {}
        for _ in range(round(SETTLE_SECONDS / 0.2)):
            for _, event, at in await self._report():
                made = int(event[:12], 16)
                if made >= began:
                    mine.setdefault(event, at - made * 1000)
            if len(mine) >= written:
                break
            await asyncio.sleep(0.2)
        missing = max(written - len(mine), 0)
        return [*mine.values(), *[round(SETTLE_SECONDS * 1_000_000)] * missing]

    def _started(self) -> Child:
        spec = {"url": self._stage.url, "key_file": str(self._stage.key_file)}
        return Child("tests.benchmarks.host", log=self._folder / "host.log", spec=spec)

    def _url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def _report(self) -> list[tuple[str, str, int]]:
        return await asyncio.to_thread(arrivals, self._port)

    async def _until(self, count: int) -> None:
        """Wait until the receiver has answered `count` requests. Raise TimeoutError."""
        async with asyncio.timeout(WARM_SECONDS):
            while int(json.loads(await self._ask("count"))["count"]) < count:
                await asyncio.sleep(0.1)

    async def _ask(self, what: str) -> bytes:
        return await asyncio.to_thread(ask, f"{self._url()}/{what}")


def owner(number: int) -> str:
    return f"{number:024x}"


async def _settle_in(
    tx: Tx, owner_id: str, url: str, drafts: Sequence[tuple[str, tuple[str, ...]]], ring: KeyRing
) -> None:
    """Create an owner's webhooks."""
    ids = Ids()
    for path, events in drafts:
        await webhooks.create(
            tx, owner_id=owner_id, draft=Draft(url=f"{url}/{path}", events=events),
            secret=new_secret(ids.token(32)), ring=ring,
        )  # fmt: skip
