"""Run a worker in the background of a process: start it, drain it, close its connections."""

import asyncio
from collections.abc import Callable

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.sending.egress_guard import Guard
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker import Worker, WorkerSettings
from outbox.worker.journal import Journal
from outbox.worker.settling import Settling


class Running:
    """Runs one worker with its own sender, from `start` to `drain`; another after that."""

    def __init__(
        self,
        db: Database,
        ring: KeyRing,
        guard: Guard,
        settings: WorkerSettings,
        journal: Journal | None = None,
        *,
        sender: Callable[[Guard, Clock], Sender] = Sender,
        settling: Callable[[Database, Clock], Settling] = Settling,
    ) -> None:

        def worker(through: Sender) -> Worker:
            return Worker(
                db, ring, through, clock=db.clock, ids=db.ids, settings=settings, journal=journal,
                settling=settling,
            )  # fmt: skip

        self._clock = db.clock
        self._guard = guard
        self._worker_with = worker
        self._sender_of = sender
        self._renew()
        self._task: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    @property
    def node_id(self) -> str:
        """The name under which the worker claims."""
        return self._worker.node_id

    async def take_over(self, node_id: str) -> None:
        """Take over at once from a worker whose process has ended for certain."""
        await self._worker.take_over(node_id)

    def start(self) -> None:
        """Start to deliver, unless it does; under another name if it has delivered before."""
        if self._task is not None and self._draining is None:
            return
        if self._draining is not None:
            self._draining = None
            self._renew()
        self._task = asyncio.create_task(self._worker.run(), name="delivery")

    def _renew(self) -> None:
        self._sender = self._sender_of(self._guard, self._clock)
        self._worker = self._worker_with(self._sender)

    async def drain(self, grace: float) -> None:
        """Stop within about `grace` seconds; sends in flight end or are released."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(grace), name="delivery-drain")
        await asyncio.shield(self._draining)

    async def _drain(self, grace: float) -> None:
        if self._task is None:
            return
        await self._worker.drain(grace)
        # It has ended by now unless the database is unavailable; the next start then rescues the
        # rest.
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._sender.close()
