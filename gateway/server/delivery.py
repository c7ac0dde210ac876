"""Creates the drain of this process from the configuration.

outbox.worker.run runs the drain; outbox.worker defines its work and restarts it after a fault.
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
    """The worker of this process, from `start` to `drain`."""

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
