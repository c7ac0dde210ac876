"""Creates the drain and the doctor of this process from the configuration.

outbox.worker.background_worker runs the drain; outbox.worker defines its work and restarts it after
a fault.
"""

from functools import partial

from aiohttp import web

from gateway.domain.webhooks import record_links
from gateway.server.config import Config, Egress
from gateway.server.config.value_checks import named_proxies
from gateway.server.installation import public_address
from gateway.server.parts import PARTS, Parts
from gateway.server.telemetry.journal_log import DeliveryJournal
from gateway.server.telemetry.spans import Spans
from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.state.evidence import Evidence
from outbox.queue.state.policy import Schedule
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.egress_guard import Guard
from outbox.sending.send import Sender
from outbox.webhooks.secrets import KeyRing
from outbox.worker import WorkerSettings
from outbox.worker.background_worker import Running
from outbox.worker.examination import Doctor


class Delivery(Running):
    """The worker of this process, from `start` to `drain`."""

    def __init__(
        self,
        config: Config,
        db: Database,
        ring: KeyRing,
        guard: Guard,
        spans: Spans | None = None,
        parts: Parts = PARTS,
    ) -> None:
        self._journal = DeliveryJournal(db.clock, config.logging.deliveries_per_second, spans)
        super().__init__(
            db, ring, guard, settings_of(config), self._journal,
            sender=parts.sender, settling=parts.settling,
        )  # fmt: skip

    async def drain(self, grace: float) -> None:
        await super().drain(grace)
        self._journal.close()


def rules_of(egress: Egress) -> Rules:
    """Return the addresses that requests of the installation may reach."""
    return Rules(
        egress.allow_http, tuple(parse_place(place) for place in egress.allow),
        http_setting="[egress] allow_http, and [egress] allow for a private address, in "
        "config.local.toml and restart",
        allow_setting="[egress] allow in config.local.toml and restart",
        proxies=named_proxies(egress.proxies), proxies_resolve=egress.resolve == "proxy",
        ca_file=egress.ca_file, connection_seconds=egress.connection_seconds,
    )  # fmt: skip


def settings_of(config: Config) -> WorkerSettings:
    """Return how the installation sends."""
    site = public_address(config, config.server.port)
    return WorkerSettings(
        slots=config.delivery.slots,
        timeout=config.delivery.total_seconds,
        schedule=Schedule(tuple(map(float, config.retry.schedule))),
        service=config.service.name,
        needed=Evidence(config.delivery.disable_attempts, config.delivery.disable_events),
        links=partial(record_links.address, site),
        site=site,
    )


def doctor_of(config: Config, guard: Guard, clock: Clock, ids: Ids) -> Doctor:
    """Return a doctor that sends as the installation does."""
    return Doctor(guard, clock, ids, settings_of(config), Sender(guard, clock))


DELIVERY: web.AppKey[Delivery | None] = web.AppKey("DELIVERY")
