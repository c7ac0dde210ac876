"""The product as a process with owners, receivers and load: what a fault run works on."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.engines import Engine, empty_database
from tests.support.ledger import Held, Rows, Verdict, judge, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.tenants import settle_in

DRAIN_SECONDS = {"sqlite": 20.0, "postgres": 45.0}
"""On PostgreSQL deliveries of a dead process are rescued when its lease has expired."""


@dataclass
class Deployed:
    """A running product and everything around it."""

    folder: Path
    url: str
    engine: Engine
    load: Load
    there: Recipients
    product: Product
    dice: random.Random
    rss: list[float] = field(default_factory=list)
    """Its memory each time that somebody asked for it."""

    async def more(self, count: int) -> None:
        """Wait until `count` further writes were sent."""
        await self.load.until_sent(self.load.count + count)
        self.rss.append(self.product.rss())

    async def verdict(
        self,
        fault: str,
        *,
        in_flight: Iterable[Held] = (),
        unknown_allowed: bool = False,
        seconds: float | None = None,
        strangers: bool = False,
    ) -> Verdict:
        """Wait until nothing is left to deliver, then run the ledger.

        With `strangers`, others have rows too, whose deliveries need not end: only the rows of
        the load's tenants count.
        """
        patience = DRAIN_SECONDS[self.engine] if seconds is None else seconds
        left = await (self.until_own(patience) if strangers else until_drained(self.url, patience))
        self.rss.append(self.product.rss())
        verdict = judge(
            f"{fault}, {self.engine}",
            self.load,
            await self._rows(),
            self.there.got,
            in_flight=in_flight,
            unknown_allowed=unknown_allowed,
            rss=max(self.rss),
        )
        verdict.find(left, "events and deliveries unfinished")
        return verdict

    async def _rows(self) -> Rows:
        """Return the rows of the load's tenants."""
        rows, tenants = await read_rows(self.url), self.load.tenants
        ours = {webhook for some in tenants.webhooks.values() for webhook in some}
        return Rows(
            [row for row in rows.contacts if row[1] in tenants.keys],
            [row for row in rows.events if row[1] in tenants.keys],
            [row for row in rows.deliveries if row[1] in ours],
        )

    async def until_own(self, seconds: float) -> int:
        """Wait until the load's tenants have everything; return what is missing."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            rows = await self._rows()
            wanted = sum(len(self.load.tenants.webhooks[owner]) for _, owner, _, _ in rows.events)
            left = wanted - sum(state == "delivered" for _, _, state in rows.deliveries)
            if not left or loop.time() > end:
                return left
            await asyncio.sleep(0.2)


@asynccontextmanager
async def deployed(
    engine: Engine,
    seed: int,
    *,
    url: str = "",
    owners: int = 6,
    webhooks: int = 3,
    host: str = "127.0.0.1",
    latency: tuple[float, float] = (0.0, 0.02),
    module: str = "gateway",
    prefix: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    started: bool = True,
    **draft: Any,
) -> AsyncIterator[Deployed]:
    """Run the product on a new database, or on the empty one at `url`.

    `draft` are settings of every webhook.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-fault-") as home:
        folder = Path(home)
        async with (
            _database(engine, folder, url) as address,
            recipients(owners, seed=seed, latency=latency) as there,
        ):
            tenants = await settle_in(
                address, folder, there.ports, owners=owners, webhooks=webhooks, host=host,
                **draft,
            )  # fmt: skip
            product = Product(
                folder,
                address,
                tenants.key_file,
                module=module,
                prefix=prefix,
                environment=settings,
            )
            try:
                if started:
                    await product.start()
                yield Deployed(
                    folder, address, engine, Load(tenants, seed), there, product,
                    random.Random(seed),
                )  # fmt: skip
            finally:
                await product.close()


@asynccontextmanager
async def _database(engine: Engine, folder: Path, url: str) -> AsyncIterator[str]:
    if url:
        yield url
        return
    async with empty_database(engine, folder) as address:
        yield address
