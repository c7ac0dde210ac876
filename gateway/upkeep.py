"""What goes on beside requests and deliveries: readings for the metrics, and small housekeeping."""

import asyncio
import os
import shutil
from pathlib import Path

from gateway.credentials import Credentials
from gateway.metrics import Metrics
from gateway.resources.account import tokens
from gateway.resources.crm import quotes
from outbox import gauges
from outbox.database import Database
from outbox.scheduler import Scheduler

READING_SECONDS = 10.0
FLUSH_SECONDS = 60.0
PURGE_SECONDS = 3600.0
EXPIRY_SECONDS = 60.0
EXPIRED_AT_ONCE = 20
"""How many quotes one transaction lets expire."""
LOOP_SECONDS = 0.25


class Upkeep:
    """The duties of the web side, on the engine's scheduler."""

    def __init__(
        self, db: Database, metrics: Metrics, credentials: Credentials, file: Path | None
    ) -> None:
        self._db = db
        self._clock = db.clock
        self._metrics = metrics
        self._credentials = credentials
        self._file = file
        self._scheduler = Scheduler(db.clock)
        self._lag: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take the first readings, then go on at intervals."""
        await self.read_gauges()
        self._scheduler.every(READING_SECONDS, "gauges", self.read_gauges)
        self._scheduler.every(FLUSH_SECONDS, "last-used", self._credentials.flush)
        self._scheduler.every(PURGE_SECONDS, "tokens", self._purge)
        self._scheduler.every(EXPIRY_SECONDS, "quotes", self.expire_quotes)
        self._scheduler.start()
        self._lag = asyncio.create_task(self._watch_loop(), name="loop-lag")

    async def stop(self) -> None:
        """Stop, and write down what is only in memory."""
        self._scheduler.stop()
        if self._lag is not None:
            self._lag.cancel()
        await self._credentials.flush()

    async def read_gauges(self) -> None:
        """Count what waits, measure the files. Costs of it are metrics themselves."""
        began = self._clock.monotonic()
        try:
            self._metrics.gauges(await self._db.scan(gauges.read))
        except Exception:
            self._metrics.collection_errors[("database",)].inc()
            raise
        finally:
            self._metrics.collection_seconds.labels("database").set(self._clock.monotonic() - began)
        if self._file is not None:
            self._measure(self._file)

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

    async def _purge(self) -> None:
        await self._db.write(tokens.purge)

    async def expire_quotes(self) -> None:
        """Write down which quotes have expired, in small transactions."""
        while await self._db.write(quotes.expire_quotes, EXPIRED_AT_ONCE) == EXPIRED_AT_ONCE:
            pass

    async def _watch_loop(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOP_SECONDS
            await asyncio.sleep(LOOP_SECONDS)
            self._metrics.loop_lag(max(0.0, loop.time() - due))
