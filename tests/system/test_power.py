"""Power cuts under load: acknowledged writes exist afterwards; less than FULL loses them."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.cluster import Cluster
from tests.support.engines import Engine, state_after_kill
from tests.support.faults import ENGINES, shows, sizes
from tests.support.ledger import Held, judge, newly, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import recipients
from tests.support.tenants import settle_in
from tests.support.volume import Volume, ext4

RECEIVERS = 20
RATE = 50.0
WRITES = (20, 80)
LATENCY = (0.0, 0.08)
AFTER_SECONDS = 0.3
"""Seconds that clients write to the dead disk: none of these writes may be acknowledged."""


class _Machine:
    """The parts that lose their power: the disk, and PostgreSQL on it."""

    def __init__(self, engine: Engine, volume: Volume) -> None:
        self._volume = volume
        self._cluster = Cluster(volume.path / "data") if engine == "postgres" else None
        self.url = f"sqlite:///{volume.path / 'carteiro.db'}"

    async def power_on(self) -> None:
        if self._cluster is not None:
            await self._cluster.create()
            await self._cluster.start()
            self.url = self._cluster.url

    async def restart(self) -> None:
        """Shut the machine down and start it again."""
        if self._cluster is not None:
            await self._cluster.kill()
        await asyncio.to_thread(self._volume.repower)
        if self._cluster is not None:
            await self._cluster.start()

    async def close(self) -> None:
        if self._cluster is not None:
            await self._cluster.close()


@asynccontextmanager
async def _machine(engine: Engine, folder: Path) -> AsyncIterator[tuple[_Machine, Volume]]:
    # PostgreSQL's own user must reach its data.
    folder.chmod(0o755)
    with ext4(folder, 64 if engine == "sqlite" else 384) as volume:
        machine = _Machine(engine, volume)
        try:
            await machine.power_on()
            yield machine, volume
        finally:
            await machine.close()


async def run_power_cuts(
    rounds: int, engine: Engine, seed: int, *, synchronous: Literal["full", "normal"] = "full"
) -> dict[str, Any]:
    """Make `rounds` cuts on one database, then the ledger over all of them; return the record.

    `synchronous="normal"` is the negative control: it loses acknowledged writes.
    """
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="carteiro-power-") as home:
        folder = Path(home)
        async with _machine(engine, folder) as (machine, volume):
            async with recipients(RECEIVERS, seed=seed, latency=LATENCY) as there:
                tenants = await settle_in(machine.url, folder, there.ports, owners=RECEIVERS)
                load = Load(tenants, seed)
                settings = {"CARTEIRO_DATABASE__SYNCHRONOUS": synchronous}
                product = Product(folder, machine.url, tenants.key_file, environment=settings)
                in_flight: list[Held] = []
                damaged = 0
                rss = 0.0
                try:
                    await product.start()
                    for _ in range(rounds):
                        async with load.writing(product.address, rate=RATE):
                            await load.until_sent(load.count + dice.randint(*WRITES))
                            await asyncio.sleep(dice.uniform(0.0, 0.02))
                            rss = max(rss, product.rss())
                            volume.cut()
                            await asyncio.sleep(AFTER_SECONDS)
                            product.kill()
                        await product.ended()
                        await machine.restart()
                        met, integrity = await state_after_kill(machine.url)
                        in_flight.append(newly(met, in_flight))
                        damaged += integrity != "ok"
                        await product.start()
                    # On PostgreSQL deliveries in flight are rescued when their node's lease has
                    # expired.
                    left = await until_drained(machine.url, 15 if engine == "sqlite" else 45)
                    rows = await read_rows(machine.url)
                finally:
                    await product.close()
                verdict = judge(
                    f"power cut, {engine}, synchronous={synchronous}",
                    load,
                    rows,
                    there.got,
                    in_flight=in_flight,
                    # The disk may have stored a COMMIT whose fsync it then refused to confirm.
                    unknown_allowed=True,
                    rss=rss,
                )
                verdict.find(damaged, "files damaged")
                verdict.find(left, "events and deliveries unfinished")
                verdict.figures |= {
                    "rounds": rounds,
                    "in_flight": sum(len(met) for met in in_flight),
                    "refused": len(load.refused),
                    "broken": len(load.broken),
                }
                return verdict.told()


SEED = 30260


@sizes("cuts", large=5)
@ENGINES
async def test_power_cuts_lose_nothing(engine: Engine, cuts: int) -> None:
    told = await run_power_cuts(cuts, engine, SEED)
    assert told["pass"], told


@pytest.mark.proof
@ENGINES
async def test_synchronous_normal_is_seen(engine: Engine) -> None:
    """The cost of `normal` as config.toml states it."""
    assert await shows(partial(run_power_cuts, 1, engine, synchronous="normal"), SEED)
