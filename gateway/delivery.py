"""The drain as part of this process: made from the configuration, kept running, drained at the end.

What it does is outbox.worker's affair.
"""

import asyncio

from gateway.config import Config
from gateway.logs import logger
from outbox.clock import sleep_until_set
from outbox.database import Database
from outbox.egress import Guard
from outbox.observer import Observer
from outbox.policy import Schedule
from outbox.sealing import KeyRing
from outbox.send import Sender
from outbox.worker import Worker, WorkerSettings

RESTART_SECONDS = 1.0


class Delivery:
    """Runs one worker; should a fault end it, another takes its place."""

    def __init__(
        self, config: Config, db: Database, ring: KeyRing, guard: Guard, observer: Observer
    ) -> None:
        self._db = db
        self._ring = ring
        self._observer = observer
        self._settings = WorkerSettings(
            slots=config.delivery.slots,
            timeout=config.delivery.total_seconds,
            schedule=Schedule(tuple(map(float, config.retry.schedule))),
            service=config.service.name,
        )
        self._sender = Sender(guard, db.clock)
        self._worker = self._new_worker()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to deliver."""
        self._task = asyncio.create_task(self._run(), name="delivery")

    async def drain(self, grace: float) -> None:
        """Stop within about `grace` seconds; sends under way end or are released."""
        if self._draining is None:
            self._stopping.set()
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

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                await self._worker.run()
            except Exception as error:  # noqa: BLE001 - deliveries must not stop for one fault
                logger().error("delivery_failed", exc_info=error)
                await sleep_until_set(self._stopping, RESTART_SECONDS)
                self._worker = self._new_worker()

    def _new_worker(self) -> Worker:
        return Worker(
            self._db, self._ring, self._sender,
            clock=self._db.clock, ids=self._db.ids,
            settings=self._settings, observer=self._observer,
        )  # fmt: skip
