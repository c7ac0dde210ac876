"""Periodic duties of the web side: readings for the metrics, and housekeeping.

The leader runs the duties of the whole installation (outbox.worker.duties). Each process runs the
duties that concern its own memory and machine. It is one module because each duty is
registered here.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.domain import queued_mail
from gateway.domain.accounts import (
    account_tokens,
    api_keys,
    password_resets,
    sessions,
    tokens,
)
from gateway.domain.accounts.credentials import Credentials
from gateway.domain.audit.audit_retention import AuditRetention
from gateway.domain.catalogue import RESOURCES
from gateway.domain.cells.registration import Registration
from gateway.domain.imports import upkeep as imports
from gateway.domain.imports.import_jobs import TRIED
from gateway.domain.imports.importing import Importing
from gateway.domain.privacy.persons import Persons
from gateway.domain.sales import document_links, order_verbs, quotes
from gateway.domain.storefront.campaigns import modals
from gateway.domain.storefront.carts import cart_lifecycle, cart_quotas
from gateway.domain.storefront.catalogue import reviews
from gateway.domain.storefront.checkouts import repeats
from gateway.domain.storefront.mail import mail_tokens
from gateway.domain.storefront.payments import payment_secrets
from gateway.domain.storefront.sign_in import identities
from gateway.domain.storefront.stores import hostname_claims
from gateway.domain.storefront.visitors import customer_sessions
from gateway.domain.webhooks import connecting, copies
from gateway.records import idempotency
from gateway.records.cascades import Dependants
from gateway.server import config
from gateway.server.parts import PARTS, Parts
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.webhook_series import IDLE_SECONDS
from gateway.server.upkeep.mailer import Mailer
from outbox.database import times
from outbox.database.disk import measure
from outbox.database.expiry import Expiry
from outbox.database.pacing import JobPace
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.durations import SECOND
from outbox.errors import DatabaseUnavailable
from outbox.events.event_index import Marks
from outbox.queue.log.gauges import Readings
from outbox.queue.order import ordering
from outbox.queue.replays import jobs
from outbox.queue.state import notices
from outbox.queue.upkeep import ended_moves, retention
from outbox.queue.upkeep.erasure import Erasure
from outbox.queue.upkeep.retention import Retention
from outbox.webhooks import signing_keys
from outbox.webhooks.secrets import KeyRing
from outbox.worker.checkpointing import Checkpointing
from outbox.worker.duties import Duties
from outbox.worker.scheduler import Scheduler

if TYPE_CHECKING:
    from gateway.server.upkeep.host_lookups import HostLookups

READING_SECONDS = 5.0
FLUSH_SECONDS = 60.0
RETENTION_SECONDS = 3600.0
MARK_SECONDS = 60.0
NAMES_SECONDS = 60.0
PROOF_SECONDS = 60.0
LINES_SECONDS = 300.0
SIZES_SECONDS = 15.0
LOOP_SECONDS = 1.0
PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Batches:
    """A duty in batches, which ends when a batch is not full."""

    name: str
    seconds: float
    unit: Callable[[Tx, int], Awaitable[int]]
    most: int
    """The maximum number of rows in a transaction."""
    table: str | None = None
    """The table from which it deletes rows, by the clock that is behind."""
    pausable: bool = False
    """Whether it rests in a paused database, because others are told what it ends."""


def expiring(name: str, seconds: float, rows: Expiry, most: int) -> Batches:
    """Return the duty that deletes rows whose time is over."""
    return Batches(name, seconds, rows.purge, most, rows.table)


BATCHES = (
    Batches("quotes", 60.0, quotes.expire_quotes, 20, pausable=True),
    expiring("document-links", 86_400.0, document_links.EXPIRY, 200),
    Batches("carts", 3600.0, cart_lifecycle.purge, 200, "carts"),
    expiring("cart-quotas", 3600.0, cart_quotas.EXPIRY, 200),
    Batches("orders", 60.0, order_verbs.expire, 1, pausable=True),
    Batches("coupons", 3600.0, modals.purge_coupons, 100, "coupons"),
    expiring("checkouts", 600.0, repeats.EXPIRY, 100),
    Batches("webhook-secrets", 600.0, retention.expire_secrets, 100),
    Batches("signing-keys", 600.0, signing_keys.expire, 10),
    Batches("payment-secrets", 600.0, payment_secrets.expire, 100),
    Batches("ended-jobs", 3600.0, jobs.purge, 100, "jobs"),
    Batches("ended-moves", 3600.0, ended_moves.purge, 500, "move_changes"),
    Batches("ended-imports", 600.0, imports.purge, 100, "imports"),
    expiring("idempotency", 600.0, idempotency.EXPIRY, 100),
    expiring("tokens", 3600.0, tokens.EXPIRY, 200),
    expiring("connect-codes", 3600.0, connecting.EXPIRY, 200),
    expiring("sessions", 3600.0, sessions.EXPIRY, 200),
    expiring("first-account-links", 3600.0, sessions.LINKS, 200),
    expiring("account-tokens", 3600.0, account_tokens.EXPIRY, 200),
    expiring("reset-requests", 600.0, password_resets.EXPIRY, 200),
    expiring("customer-sessions", 3600.0, customer_sessions.EXPIRY, 200),
    expiring("customer-tokens", 3600.0, mail_tokens.EXPIRY, 200),
    expiring("freed-hostnames", 86_400.0, hostname_claims.EXPIRY, 200),
    expiring("nonces", 3600.0, identities.NONCES, 200),
    expiring("queued-mails", 3600.0, queued_mail.EXPIRY, 200),
    expiring("notices", 3600.0, notices.EXPIRY, 200),
    expiring("review-quotas", 86_400.0, reviews.QUOTAS, 200),
    Batches("api-keys", 86_400.0, api_keys.purge, 200, "api_keys"),
)


@dataclass(frozen=True, slots=True)
class Further:
    """What some duties need; without one of these, its duty is left out."""

    ring: KeyRing | None = None
    mailer: Mailer | None = None
    registration: Registration | None = None
    lookups: "HostLookups | None" = None
    sweep_images: Callable[[], Awaitable[None]] | None = None
    disk_bytes: int = 0
    """The size of the disk of a PostgreSQL server; 0 is unknown."""


class Upkeep:
    """The duties of the web side, run by the engine's scheduler."""

    def __init__(
        self,
        db: Database,
        metrics: Metrics,
        credentials: Credentials,
        file: Path | None,
        retention: config.Retention,
        further: Further | None = None,
        parts: Parts = PARTS,
    ) -> None:
        further = further or Further()
        ring = further.ring
        self._db = db
        self._clock = db.clock
        self._metrics = metrics
        self._credentials = credentials
        self._file = file
        self._disk_bytes = further.disk_bytes
        self._readings: Readings | None = None
        self._retention = Retention(
            db, deliveries_days=retention.deliveries_days, events_days=retention.events_days
        )
        self.duties = Duties(db, db.leadership())
        for one in BATCHES:
            run = partial(self.run_all, one)
            self.duties.once_every(one.seconds, one.name, run, pausable=one.pausable)
        if db.engine == "postgres":
            self.duties.once_every(RETENTION_SECONDS, "left-moves", partial(_left_moves, db))
        dependants = Dependants(db, RESOURCES)
        self.duties.when(dependants.any_pending, "dependants", dependants.run_once)
        self.duties.once_every(RETENTION_SECONDS, "retention", self._retention.run_once)
        if ring is not None:
            checkpointing = Checkpointing(db, ring, days=retention.deliveries_days)
            self.duties.once_every(RETENTION_SECONDS, "checkpoints", checkpointing.run_once)
        audit = AuditRetention(db, days=retention.audit_days)
        self.duties.once_every(RETENTION_SECONDS, "audit", audit.run_once)
        erasure = Erasure(db) if ring is None else Persons(db, ring)
        self.duties.when(erasure.any_open, "erasures", erasure.run_once)
        recovering = parts.recovering(db, copies.read)
        self.duties.when(recovering.any_running, "jobs", recovering.run_once)
        importing = Importing(db)
        self.duties.when(importing.any_waiting, "imports", importing.run_once, TRIED)
        self.duties.once_every(MARK_SECONDS, "event-marks", Marks(db).run_once)
        self.duties.once_every(LINES_SECONDS, "lines", partial(ordering.repair, db))
        self.duties.when(
            partial(ordering.any_turning, db), "turning", partial(ordering.finish_all, db)
        )
        # The pausable ones change what other installations may share, ask others or tell people.
        if further.registration is not None:
            names = further.registration
            self.duties.once_every(NAMES_SECONDS, "cell-names", names.settle, pausable=True)
            self.duties.once_every(
                RETENTION_SECONDS, "cell-register", names.register, pausable=True
            )
        if further.lookups is not None:
            self.duties.once_every(
                PROOF_SECONDS, "hostnames", further.lookups.run_once, pausable=True
            )
        if further.sweep_images is not None:
            self.duties.once_every(RETENTION_SECONDS, "images", further.sweep_images, pausable=True)
        if further.mailer is not None:
            mailer = further.mailer
            self.duties.when(mailer.any_due, "mails", mailer.run_once, pausable=True)
        self._scheduler = Scheduler(db.clock)
        self._looks = False
        """Whether the scheduler runs the duties; without the leadership they do nothing."""
        self._lag: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start what each process does for itself."""
        # Until it leads, this process has no readings.
        self._metrics.gauges(None)
        self._scheduler.every(FLUSH_SECONDS, "last-used", self._credentials.flush)
        if self._file is None:
            await self._measure_server()
            self._scheduler.every(SIZES_SECONDS, "sizes", self._measure_server)
        self._scheduler.start()
        self._lag = asyncio.create_task(self._watch_loop(), name="loop-lag")

    async def start_duties(self) -> None:
        """Stand for leader; take the first readings, then start the periodic duties."""
        self.duties.start()
        try:
            await self.read_gauges()
        finally:
            if not self._looks:
                self._looks = True
                self._scheduler.every(READING_SECONDS, "gauges", self._read_on)
                self._scheduler.every(self.duties.look_seconds, "duties", self.duties.look)

    async def stop_duties(self) -> None:
        """Stand for leader no more; this process stays ready to start the duties again."""
        await self.duties.stop()
        await self.read_gauges()

    async def stop(self) -> None:
        """Stop, and save the data that is only in memory."""
        self._scheduler.stop()
        await self.duties.stop()
        if self._lag is not None:
            self._lag.cancel()
        await self._credentials.flush()

    async def read_gauges(self) -> None:
        """Count waiting deliveries if this node leads, measure the files, and time both."""
        if self._file is not None:
            self._measure(self._file)
        if not self.duties.leadership.leads:
            self._readings = None
            self._metrics.gauges(None)
            return
        began = self._clock.monotonic()
        try:
            # A new leader starts again: its old counts may be out of date.
            if self._readings is None:
                self._readings = Readings(self._db)
                await self._remember(self._readings)
            reading = await self._readings.take(self._metrics.choose)
        except Exception:
            self._metrics.collection_errors[("database",)].inc()
            raise
        finally:
            self._metrics.collection_seconds.labels("database").set(self._clock.monotonic() - began)
        if self._readings.complete:
            self._metrics.gauges(reading)

    async def _remember(self, readings: Readings) -> None:
        """Restore the metric series of recently active webhooks after a restart."""
        series = self._metrics.webhooks
        since = self._clock.wall() - round(IDLE_SECONDS * SECOND)
        series.admit(await readings.recent(since, series.most), self._clock.monotonic())

    async def _read_on(self) -> None:
        """Take a reading; a new leader continues, with pauses, until its counts are complete."""
        await self.read_gauges()
        while self._readings is not None and not self._readings.complete:
            await asyncio.sleep(PAUSE_SECONDS)
            await self.read_gauges()

    def _measure(self, file: Path) -> None:
        began = self._clock.monotonic()
        metrics = self._metrics
        try:
            metrics.file_bytes.set(file.stat().st_size)
            wal = Path(f"{file}-wal")
            metrics.wal_bytes.set(wal.stat().st_size if wal.exists() else 0)
            metrics.free_bytes.set(shutil.disk_usage(os.path.dirname(file) or ".").free)
        except OSError:
            metrics.collection_errors[("files",)].inc()
        metrics.collection_seconds.labels("files").set(self._clock.monotonic() - began)

    async def _measure_server(self) -> None:
        """Measure the databases of the PostgreSQL server."""
        metrics = self._metrics
        try:
            sizes = await self._db.scan(DUTIES, measure)
        except DatabaseUnavailable:
            metrics.collection_errors[("files",)].inc()
            return
        metrics.file_bytes.set(sizes.database)
        if sizes.wal is not None:
            metrics.wal_bytes.set(sizes.wal)
        if self._disk_bytes:
            metrics.free_bytes.set(self._disk_bytes - sizes.databases - (sizes.wal or 0))

    async def run_all(self, batches: Batches) -> None:
        """Run a unit in small transactions until it has nothing left to do."""
        pace = JobPace(self._db.meter, batches.most, clock=self._clock)
        # What there is to do once is not worth less; a unit may do more than it was asked for.
        pace.amount = batches.most
        while True:
            async with pace.step() as most:
                if batches.table is None:
                    count = await self._db.write(batches.unit, most)
                else:
                    count = await self._db.write(times.by_earlier, batches.unit, most)
                    self._metrics.purged(batches.table, count)
            if count < most:
                break
        if batches.table is not None:
            self._metrics.swept(batches.table)

    async def _watch_loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOP_SECONDS
            await asyncio.sleep(LOOP_SECONDS)
            self._metrics.loop_lag(max(0.0, loop.time() - due))
            self._metrics.count()


async def _left_moves(db: Database) -> None:
    # Its driver is an extra.
    from gateway.server.upkeep.left_moves import LeftMoves

    await LeftMoves(db).run_once()
