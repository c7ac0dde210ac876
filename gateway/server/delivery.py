"""The drain as part of this process, made from the configuration.

How it runs is outbox.worker.run's affair; what it does, and that it goes on after a fault, is
outbox.worker's.
"""

from gateway.server.config import Config
from outbox.database.transaction import Database
from outbox.observer import Observer
from outbox.queue.policy import Schedule
from outbox.sending.guard import Guard
from outbox.webhooks.secrets import KeyRing
from outbox.worker import WorkerSettings
from outbox.worker.run import Running


class Delivery(Running):
    """The one worker of this process, from `start` to `drain`."""

    def __init__(
        self, config: Config, db: Database, ring: KeyRing, guard: Guard, observer: Observer
    ) -> None:
        settings = WorkerSettings(
            slots=config.delivery.slots,
            timeout=config.delivery.total_seconds,
            schedule=Schedule(tuple(map(float, config.retry.schedule))),
            service=config.service.name,
        )
        super().__init__(db, ring, guard, settings, observer)
