"""Signals between processes: new work, and changed webhooks.

One connection listens and sends NOTIFY, after COMMIT: inside the transaction NOTIFY takes a lock of
the whole cluster and halves the write rate. Polling makes up for a missed signal.

It is one module because all signals share one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from functools import partial

import asyncpg
from tenacity import AsyncRetrying, retry_if_exception_type, wait_exponential

from outbox.clock import Clock, sleep_until_set
from outbox.database import locks
from outbox.database.pacing import Meter
from outbox.database.postgres import job_signals
from outbox.database.postgres.faults import LOST
from outbox.database.postgres.hosts import CONNECT_SECONDS, Connection
from outbox.database.postgres.job_signals import HeardJob
from outbox.database.postgres.server import Server
from outbox.database.sql import translate
from outbox.database.transaction import Idle, Name, Tx, Unsubscribe, Wake

NOTIFY_SECONDS = 0.005
NODES_SECONDS = 3.0
ANNOUNCE_SECONDS = 0.05
LAST_WORD_SECONDS = 1.0
NAMES = 200  # webhook ids per payload, which PostgreSQL limits to 8,000 bytes

_MINE = translate("select own_channel() as channel, pg_backend_pid() as pid", "postgres")
_SEND = "select pg_notify($1, payload) from unnest(cast($2 as text[])) as payload"
# Each listener has a lock named after its node, which the server releases when the node dies. The
# node's lease lasts longer, so a wake-up sent by lease alone could wait for the next poll.
_HERE = f"select pg_advisory_lock_shared({locks.NODES}, hashtext($1))"
_NOT_HERE = f"select pg_advisory_unlock_shared({locks.NODES}, hashtext($1))"
_NODES = f"""
select n.id from nodes n
where n.alive_until > due_now() and exists (
  select 1 from pg_locks l where l.locktype = 'advisory' and l.classid = {locks.NODES}
    and l.database = (select oid from pg_database where datname = current_database())
    and cast(l.objid as bigint) = cast(hashtext(n.id) as bigint) & 4294967295 and l.granted)
order by n.id
"""
# One minute of tolerance for clock differences.
_CHANGED = "select id from webhooks where updated_at >= $1 - 60000000"

Changed = Callable[[Collection[str]], None]
_Listener = tuple[Wake, Name | None, Idle | None]


class Signals:
    """The signals of one process.

    Payloads: `work` (all nodes), `work NODE`, `changed ID ID …`, `here` (another node listens),
    `owners` (an owner moves), and those of outbox.database.postgres.job_signals.
    """

    def __init__(self, server: Server, clock: Clock, meter: Meter) -> None:
        self._server = server
        self._clock = clock
        self._listeners: list[_Listener] = []
        self._watchers: list[Changed] = []
        self._followers: list[Wake] = []
        self._live: list[str] = []
        self._turn = 0
        self._announced = float("-inf")
        self._heard_until: int | None = None
        self._pid: int | None = None
        self._channel = ""
        self._connections = 0
        self.moves_epoch = 0
        """Which connection listens, by its number; 0 while none does."""
        self._named: set[str] = set()
        self._looked = float("-inf")
        self._payloads: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        self._something = asyncio.Event()
        self._said = asyncio.Event()
        self._said.set()
        self._task: asyncio.Task[None] | None = None
        self._job = HeardJob(meter, self._send)

    def listen(self, callback: Wake, node: Name | None, idle: Idle | None = None) -> Unsubscribe:
        """Call `callback` when there is work for the node that `node` returns (None: any node).

        While `idle` says so, that node takes what this process commits.
        """
        listener = (callback, node, idle)
        self._listeners.append(listener)
        self._start()
        return partial(self._listeners.remove, listener)

    def on_change(self, callback: Changed) -> Unsubscribe:
        """Call `callback` with the ids of webhooks that any process changed."""
        self._watchers.append(callback)
        self._start()
        return partial(self._watchers.remove, callback)

    def on_move(self, callback: Wake) -> Unsubscribe:
        """Call `callback` when an owner may have moved."""
        self._followers.append(callback)
        self._start()
        return partial(self._followers.remove, callback)

    def committed(self, made_work: bool, changed: Collection[str]) -> None:
        """Send the signals of a committed transaction of this process."""
        if changed:
            self._tell_changed(changed)
            self._changed |= dict.fromkeys(sorted(changed))
            self._send_soon()
        if made_work:
            self._wake_one()

    def announce(self) -> bool:
        """Wake one other node because work is left, at a limited rate. Return whether it does."""
        now = self._clock.monotonic()
        others = [node for node in self._live if node not in self._here()]
        if not others or now - self._announced < ANNOUNCE_SECONDS:
            return False
        self._announced = now
        self._turn += 1
        self._send(f"work {others[self._turn % len(others)]}")
        return True

    async def close(self) -> None:
        """Send pending signals, if that is possible soon, and stop."""
        self._job.forget()
        if self._task is None:
            return
        await sleep_until_set(self._said, LAST_WORD_SECONDS)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _wake_one(self) -> None:
        """Wake this node, or another while this one is busy; without one here the next in rotation.

        Wake all nodes while none is known. This node begins without a round trip, and while it is
        busy others take a part, at a limited rate: each signal costs the server work.
        """
        here = self._here()
        for callback, node, _ in self._listeners:
            if node is None:
                callback()
        if not self._live or self._pid is None:
            # No node to choose from, or no connection to send on.
            self._wake_here()
            self._send("work")
        elif not here.keys() & set(self._live):
            self._turn += 1
            self._send(f"work {self._live[self._turn % len(self._live)]}")
        elif self._idle() or not self.announce():
            self._wake_here()

    def _here(self) -> dict[str, Wake]:
        return {node(): callback for callback, node, _ in self._listeners if node is not None}

    def _idle(self) -> bool:
        return any(idle is not None and idle() for _, _, idle in self._listeners)

    def _wake_here(self) -> None:
        for callback, node, _ in self._listeners:
            if node is not None:
                callback()

    def _tell_changed(self, ids: Collection[str]) -> None:
        for callback in self._watchers:
            callback(ids)

    def _send(self, payload: str) -> None:
        self._payloads[payload] = None
        self._send_soon()

    def _send_soon(self) -> None:
        self._something.set()
        self._said.clear()
        self._start()

    def _start(self) -> None:
        """Start the connection; a process that only writes also signals its work."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep(), name="postgres-signals")

    async def _keep(self) -> None:
        """Connect, and reconnect after each loss."""
        forever = AsyncRetrying(
            retry=retry_if_exception_type((*LOST, asyncpg.PostgresError)),
            wait=wait_exponential(multiplier=0.1, max=2),
        )
        async for attempt in forever:
            with attempt:
                connection = await self._server.connect()
                # Not only when the next statement fails: meanwhile nothing is heard.
                connection.add_termination_listener(self._lost)
                try:
                    await self._serve(connection)
                finally:
                    self._pid = None
                    self.moves_epoch = 0
                    connection.remove_termination_listener(self._lost)
                    connection.terminate()

    def _lost(self, _: object) -> None:
        self.moves_epoch = 0
        self._something.set()

    async def _serve(self, connection: Connection) -> None:
        # A pooler that keeps sessions has told another number of this one.
        self._channel, self._pid = await connection.fetchrow(_MINE, timeout=CONNECT_SECONDS)
        await connection.add_listener(self._channel, self._heard)
        self._connections += 1
        self.moves_epoch = self._connections
        self._named = set()
        await self._catch_up(connection)
        while True:
            # Before any signal goes out: the set of nodes may have changed during the
            # disconnection.
            await self._name(connection)
            self._live = await self._nodes(connection)
            self._heard_until = self._clock.wall()
            self._looked = self._clock.monotonic()
            while (left := self._looked + NODES_SECONDS - self._clock.monotonic()) > 0:
                if await sleep_until_set(self._something, left):
                    await self._send_all(connection)
                    await asyncio.sleep(NOTIFY_SECONDS)

    async def _send_all(self, connection: Connection) -> None:
        self._something.clear()
        payloads, changed = list(self._payloads), list(self._changed)
        groups = [changed[n : n + NAMES] for n in range(0, len(changed), NAMES)]
        messages = [*(f"changed {' '.join(group)}" for group in groups), *payloads]
        try:
            await connection.execute(_SEND, self._channel, messages, timeout=CONNECT_SECONDS)
        except BaseException:
            # Change signals must arrive; the others may be lost.
            self._something.set()
            raise
        for payload in payloads:
            self._payloads.pop(payload, None)
        for webhook_id in changed:
            self._changed.pop(webhook_id, None)
        if not self._payloads and not self._changed:
            self._said.set()

    async def _catch_up(self, connection: Connection) -> None:
        """Call the callbacks once, for signals missed while disconnected."""
        self._wake_here()
        for follow in self._followers:
            follow()
        for callback, node, _ in self._listeners:
            if node is None:
                callback()
        if self._heard_until is not None and self._watchers:
            rows = await connection.fetch(_CHANGED, self._heard_until, timeout=CONNECT_SECONDS)
            if rows:
                self._tell_changed([row["id"] for row in rows])

    async def _name(self, connection: Connection) -> None:
        """Take the locks of the nodes that listen in this process."""
        here = set(self._here())
        for node in sorted(here - self._named):
            await connection.fetchval(_HERE, node, timeout=CONNECT_SECONDS)
            self._send("here")
        for node in sorted(self._named - here):
            await connection.fetchval(_NOT_HERE, node, timeout=CONNECT_SECONDS)
        self._named = here

    async def _nodes(self, connection: Connection) -> list[str]:
        try:
            rows = await connection.fetch(_NODES, timeout=CONNECT_SECONDS)
        except (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError):
            # The schema does not exist yet.
            return []
        return [row["id"] for row in rows]

    def _heard(self, _: object, pid: int, channel: str, payload: str) -> None:
        if pid == self._pid:
            return
        kind, _, rest = payload.partition(" ")
        if kind == "changed":
            self._tell_changed(rest.split())
            return
        if kind == "owners":
            for follow in self._followers:
                follow()
            return
        if kind in job_signals.KINDS:
            self._job.heard(kind)
            return
        if kind == "here":
            self._looked = float("-inf")
            self._something.set()
            return
        here = self._here()
        for callback, node, _ in self._listeners:
            if node is None:
                callback()
        if rest in here:
            here[rest]()
        elif not rest:
            self._wake_here()


async def tell(tx: Tx, what: str) -> None:
    """Send a signal with the commit of a transaction; of rare ones only."""
    await tx.one("select pg_notify(own_channel(), $1)", what)
