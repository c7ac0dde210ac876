"""The drain as part of this process: made from the configuration, run, drained at the end.

What it does, and that it goes on after a fault, is outbox.worker's affair.
"""

import asyncio

from gateway.config import Config
from outbox.database.transaction import Database
from outbox.observer import Observer
from outbox.queue.policy import Schedule
from outbox.sending.guard import Guard
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker import Worker, WorkerSettings


class Delivery:
    """Runs one worker from `start` to `drain`."""

    def __init__(
        self, config: Config, db: Database, ring: KeyRing, guard: Guard, observer: Observer
    ) -> None:
        self._sender = Sender(guard, db.clock)
        settings = WorkerSettings(
            slots=config.delivery.slots,
            timeout=config.delivery.total_seconds,
            schedule=Schedule(tuple(map(float, config.retry.schedule))),
            service=config.service.name,
        )
        self._worker = Worker(
            db, ring, self._sender, clock=db.clock, ids=db.ids, settings=settings,
            observer=observer,
        )  # fmt: skip
        self._task: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.create_task(self._worker.run(), name="delivery")

    async def drain(self, grace: float) -> None:
        """Stop within about `grace` seconds; sends under way end or are released."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(grace), name="delivery-drain")
        await asyncio.shield(self._draining)

    async def _drain(self, grace: float) -> None:
        if self._task is None:
            return
        await self._worker.drain(grace)
        # It has ended by now unless the database is away; then the next start rescues the rest.
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._sender.close()
