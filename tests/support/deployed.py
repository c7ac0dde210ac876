"""The product as a process with owners, receivers and load: what a fault run works on."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.support.cluster import Cluster
from tests.support.console import Forms, signed_in
from tests.support.engines import Engine, empty_database, state_after_kill
from tests.support.ledger import Held, Rows, Verdict, judge, newly, read_rows, until_drained
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.site import HASHED
from tests.support.tenants import Tenants, move_in, settle_in
from tests.support.waiting import in_time

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
    deaths: list[Held] = field(default_factory=list)
    """What each death met in flight, and no earlier one."""
    damaged: int = 0
    cluster: Cluster | None = None
    """The server of its own, where a test gave it one."""

    @property
    def tenants(self) -> Tenants:
        return self.load.tenants

    def node(self, name: str, **environment: str) -> Product:
        """Return one more node on the same database."""
        return Product(
            self.folder, self.url, self.tenants.key_file, name=name, environment=environment
        )

    def writing(self, rate: float = 50.0, notes: int = 0) -> AbstractAsyncContextManager[None]:
        """Write at this rate while the block runs."""
        return self.load.writing(self.product.address, rate=rate, notes=notes)

    async def more(self, count: int, seconds: float = 60.0) -> None:
        """Wait until `count` further writes were sent."""
        await self.load.until_sent(self.load.count + count, seconds)
        self.rss.append(self.product.rss())

    async def acked_after(self, since: float, seconds: float = 30.0) -> float:
        """Return the seconds from `since` until a write is acknowledged, at most so many."""
        last = since + seconds - time.monotonic()
        await in_time(lambda: any(a > since for a in [*self.load.acked_at.values()][-50:]), last)
        return time.monotonic() - since

    async def died(self) -> Held:
        """Note what the process had in flight at its end, and the state of its file."""
        await self.product.ended()
        met, integrity = await state_after_kill(self.url)
        self.deaths.append(newly(met, self.deaths))
        self.damaged += integrity != "ok"
        return self.deaths[-1]

    async def kill(self) -> Held:
        """Send SIGKILL, and note what that met."""
        self.product.kill()
        return await self.died()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """Open the database beside the product."""
        async with opened(self.url) as db:
            yield db

    async def run(self, unit: Callable[..., Any], *args: Any) -> Any:
        """Run a unit beside the product."""
        async with self.opened() as db:
            return await db.write(unit, *args)

    async def newcomers(self, first: int, places: Sequence[Sequence[str]]) -> Tenants:
        """Create an owner for each of `places`, the URLs of its webhooks; return them all."""
        tenants = Tenants(self.tenants.key_file)
        ring = read_key_file(tenants.key_file, Ids())
        async with self.opened() as db:
            for number, urls in enumerate(places):
                await db.write(move_in, tenants, Ids(), ring, first + number, [*urls])
        return tenants

    @asynccontextmanager
    async def console(self, number: int = 0) -> AsyncIterator[Forms]:
        """Sign an owner in to the console."""
        await self.run(_give_passwords)
        async with signed_in(self.product.address, f"owner{number}@example.com") as forms:
            yield forms

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

        Deliveries that a death met may come twice, and those `in_flight`. With `strangers`, others
        have rows too, whose deliveries need not end: only the rows of the load's tenants count.
        """
        patience = DRAIN_SECONDS[self.engine] if seconds is None else seconds
        left = await (self.until_own(patience) if strangers else until_drained(self.url, patience))
        self.rss.append(self.product.rss())
        verdict = judge(
            f"{fault}, {self.engine}", self.load, await self.own_rows(), self.there.got,
            in_flight=[*self.deaths, *in_flight], unknown_allowed=unknown_allowed,
            rss=max(self.rss),
        )  # fmt: skip
        verdict.find(left, "events and deliveries unfinished")
        verdict.find(self.damaged, "files damaged")
        if self.deaths:
            verdict.figures["in_flight"] = sum(map(len, self.deaths))
        return verdict

    async def own_rows(self) -> Rows:
        """Return the rows of the load's tenants."""
        rows, tenants = await read_rows(self.url), self.tenants
        ours = {webhook for some in tenants.webhooks.values() for webhook in some}
        return Rows(
            [row for row in rows.contacts if row[1] in tenants.keys],
            [row for row in rows.events if row[1] in tenants.keys],
            [row for row in rows.deliveries if row[1] in ours],
        )

    async def until_own(self, seconds: float) -> int:
        """Wait until the load's tenants have everything; return what is missing."""
        left = 1

        async def done() -> bool:
            nonlocal left
            rows = await self.own_rows()
            wanted = sum(len(self.tenants.webhooks[owner]) for _, owner, _, _ in rows.events)
            left = wanted - sum(state == "delivered" for _, _, state in rows.deliveries)
            return not left

        await in_time(done, seconds)
        return left


async def _give_passwords(tx: Tx) -> None:
    await tx.run("update users set password_hash = $1", HASHED)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    """Open a database beside the product."""
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        yield db
    finally:
        await db.close()


@asynccontextmanager
async def deployed(
    engine: Engine,
    seed: int,
    *,
    url: str = "",
    through: Callable[[str], str] = lambda url: url,
    folder: Path | None = None,
    ports: Sequence[int] = (),
    owners: int = 6,
    webhooks: int = 3,
    host: str = "127.0.0.1",
    latency: tuple[float, float] = (0.0, 0.02),
    broken: str = "",
    prefix: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    started: bool = True,
    **draft: Any,
) -> AsyncIterator[Deployed]:
    """Run the product on a new database in `folder`, or on the empty one at `url`.

    `through` changes the address that it gets. Receivers of the test's own have `ports`. `broken`
    is a rule that is broken, and `draft` are settings of every webhook.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-fault-") as home:
        place = folder or Path(home)
        async with (
            _database(engine, place, url) as address,
            recipients(0 if ports else owners, seed=seed, latency=latency) as there,
        ):
            tenants = await settle_in(
                address, Path(home), [*ports] or there.ports, owners=owners, webhooks=webhooks,
                host=host, **draft,
            )  # fmt: skip
            product = Product(
                place, through(address), tenants.key_file, broken=broken, prefix=prefix,
                environment=settings,
            )  # fmt: skip
            try:
                if started:
                    await product.start()
                yield Deployed(
                    place, address, engine, Load(tenants, seed), there, product,
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
