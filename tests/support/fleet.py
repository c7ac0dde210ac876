"""Several nodes of the product on their own PostgreSQL server, under load."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import asyncpg

from tests.support.blackhole import BlackHole, black_hole
from tests.support.cluster import Cluster, own_server
from tests.support.ledger import Held, query
from tests.support.load import Load
from tests.support.product import Product
from tests.support.recipients import Recipients, recipients
from tests.support.standby import Standby
from tests.support.tenants import settle_in
from tests.support.waiting import in_time

RATE = 50.0
WARM_WRITES = 60
OWNERS = 20
RECEIVERS = 30
LATENCY = (0.05, 0.3)
"""Response time of a receiver in seconds: each node always has some sends in flight."""
QUIET_SECONDS = 3.0

# Each node signs in with its own role, which identifies its rows and backends.
WHO = """
create table who_is (id text primary key, who text not null);
create function note_who() returns trigger language plpgsql as $$
begin
  insert into who_is values (new.id, current_user) on conflict do nothing;
  return null;
end $$;
create trigger note_who after insert or update on nodes for each row execute function note_who();
"""
HELD_BY = """
select d.event_id, d.webhook_id, d.claim from deliveries d join who_is w on w.id = d.node_id
where d.state = 'in_flight' and w.who = '{}'
"""
IDS_OF = "select id from who_is where who = '{}'"
# A backend with half a message of a client is active, and waits for the rest.
IN_TRANSACTION = """
select count(*) from pg_stat_activity where usename = '{}' and (state like 'idle in transaction%'
  or state = 'active' and wait_event = 'ClientRead')
"""
AT_WORK = """
select count(*) from pg_stat_activity where usename = '{}' and state = 'active'
  and wait_event is distinct from 'ClientRead'
"""


@dataclass
class Node:
    """One process: its role in the database is its name, its service name marks its requests."""

    name: str
    product: Product
    hole: BlackHole | None = None

    @property
    def agent(self) -> str:
        """The User-Agent of its requests."""
        return f"{self.name}-Webhook/1.0"


@dataclass(frozen=True)
class Spell:
    """A fault of one node: the webhooks it had claimed then, and who responded late."""

    start: float
    end: float
    webhooks: frozenset[str]
    address: str = ""


@dataclass
class Fleet:
    """The parts of a fault run."""

    cluster: Cluster
    there: Recipients
    load: Load
    nodes: list[Node]
    dice: random.Random
    spells: list[Spell] = field(default_factory=list)
    in_flight: list[Held] = field(default_factory=list)
    """Deliveries that each fault interrupted and that others may send again."""
    standby: Standby | None = None

    @property
    def url(self) -> str:
        """The address of the database."""
        return self.standby.both if self.standby else self.cluster.url

    @asynccontextmanager
    async def busy(self, after: int = WARM_WRITES) -> AsyncIterator[None]:
        """Run load on all nodes: some before the block, `after` so many writes behind it."""
        addresses = [node.product.address for node in self.nodes]
        async with self.load.writing(*addresses, rate=RATE):
            await self.writes(WARM_WRITES, 2 * WARM_WRITES)
            yield
            await self.writes(after, after)

    async def writes(self, low: int, high: int) -> None:
        """Wait until a random number of writes between these two was sent."""
        await self.load.until_sent(self.load.count + self.dice.randint(low, high))

    async def seconds(self, low: float, high: float) -> None:
        """Run load for a random time between these two, so that a fault can hit at any point."""
        await asyncio.sleep(self.dice.uniform(low, high))

    def note(
        self, start: float, met: Held | None = None, address: str = "", lasts: float = 0.0
    ) -> None:
        """Note a fault since `start`, which held these deliveries, or all webhooks, until now.

        What it held may wait for `lasts` seconds.
        """
        every = self.load.tenants.paths.values()
        webhooks = every if met is None else [webhook for _, webhook in met]
        end = max(time.monotonic(), start + lasts)
        self.spells.append(Spell(start, end, frozenset(webhooks), address))

    async def query(self, sql: str) -> list[Any]:
        """Read rows of the database."""
        return await query(self.url, sql)

    async def held_by(self, node: Node) -> Held:
        """Return the deliveries in flight of `node`, which is silent by now."""
        await in_time(lambda: self._silent(node), QUIET_SECONDS)
        rows = await self.query(HELD_BY.format(node.name))
        return {(event, webhook): claim for event, webhook, claim in rows}

    async def ids_of(self, node: Node) -> set[str]:
        """Return its names in the database."""
        return {id_ for (id_,) in await self.query(IDS_OF.format(node.name))}

    async def in_transaction(self, node: Node) -> bool:
        """Return whether `node`, which is silent by now, has left a transaction open."""
        [(count,)] = await self.query(IN_TRANSACTION.format(node.name))
        return bool(count)

    async def _silent(self, node: Node) -> bool:
        [(count,)] = await self.query(AT_WORK.format(node.name))
        return not count

    def busy_with(self, node: Node) -> bool:
        """Return whether a receiver is handling a request of `node` now."""
        now = time.monotonic()
        return any(r.agent == node.agent and r.open_at(now) for r in self.there.got[-500:])

    def freeze(self, node: Node) -> float:
        """Send SIGSTOP, and no more writes to the node; return the time."""
        self.load.resting.add(node.product.address)
        node.product.send(signal.SIGSTOP)
        return time.monotonic()

    def thaw(self, node: Node) -> float:
        """Send SIGCONT; return the time."""
        node.product.send(signal.SIGCONT)
        self.load.resting.discard(node.product.address)
        return time.monotonic()

    async def until_acked(self, node: Node, since: float, seconds: float) -> float:
        """Return the seconds from `since` to the first 2xx of `node` to a write sent after it.

        Return `seconds` when there is none in that time.
        """
        address, load = node.product.address, self.load

        def first() -> list[float]:
            return [
                load.acked_at[a.request_id] - since
                for a in load.answers
                if a.began >= since and a.address == address and a.request_id in load.acked_at
            ]

        await in_time(lambda: bool(first()), seconds)
        return min(first(), default=seconds)


@asynccontextmanager
async def fleet(
    seed: int,
    nodes: int = 4,
    *,
    dark: int = 0,
    follower: Literal["", "asynchronous", "synchronous"] = "",
    broken: str = "",
    environment: Mapping[str, str] | None = None,
    draft: Mapping[str, Any] | None = None,
) -> AsyncIterator[Fleet]:
    """Run `nodes` serving processes; the first `dark` of them reach the server through a hole.

    `draft` are settings of every webhook.

    With a `follower` the server has a standby, and the nodes have the addresses of both.
    """
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(own_server())
        folder = cluster.data.parent
        there = await stack.enter_async_context(recipients(RECEIVERS, seed=seed, latency=LATENCY))
        settings = {"sequenced": True} | dict(draft or {})
        tenants = await settle_in(cluster.url, folder, there.ports, owners=OWNERS, **settings)
        names = [f"node{'abcdefgh'[n]}" for n in range(nodes)]
        await prepare(cluster.url, names)
        standby = await _followed(stack, cluster, folder, follower) if follower else None
        to_server = partial(asyncio.open_connection, "127.0.0.1", cluster.port)
        made = []
        for n, name in enumerate(names):
            hole = await stack.enter_async_context(black_hole(to_server)) if n < dark else None
            url = standby.both if standby else cluster.url
            if hole:
                url = url.replace(str(cluster.port), str(hole.port))
            product = Product(
                folder, url.replace("postgres@", f"{name}@"), tenants.key_file, broken=broken,
                name=name, environment={"CARTEIRO_SERVICE__NAME": name} | dict(environment or {}),
            )  # fmt: skip
            stack.push_async_callback(product.close)
            made.append(Node(name, product, hole))
        await asyncio.gather(*(node.product.start() for node in made))
        load = Load(tenants, seed)
        yield Fleet(cluster, there, load, made, random.Random(seed), standby=standby)


async def _followed(
    stack: AsyncExitStack, cluster: Cluster, folder: Path, follower: str
) -> Standby:
    """Run a standby of `cluster`."""
    standby = Standby(cluster, folder / "standby")
    stack.push_async_callback(standby.close)
    await standby.create()
    await standby.start()
    if follower == "synchronous":
        await standby.require()
    else:
        await standby.until_streaming()
    return standby


async def prepare(url: str, names: Sequence[str]) -> None:
    """Give each node a role, and let the database record which names in `nodes` belong to it."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(WHO)
        for name in names:
            await connection.execute(f"create role {name} superuser login")
    finally:
        await connection.close()
