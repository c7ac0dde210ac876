"""The duty that erases persons: records, stored responses, events with their log, and files.

Owners take turns, one unit of work each, so that an owner who erases many persons holds up nobody.
Each unit leaves the database as after a part of the erasure, and the next run goes on from there.
"""

from collections.abc import Awaitable, Callable

import structlog

from gateway.domain.contacts import person_erasures
from gateway.domain.contacts.person_erasures import Stage
from gateway.domain.privacy import certificates, progress
from gateway.domain.privacy.progress import Ahead
from outbox.database.pacing import JobPace
from outbox.database.transaction import Database, Scrubbed, Tx
from outbox.errors import DatabaseUnavailable
from outbox.queue.state import owner_reports
from outbox.queue.upkeep import erasure_requests
from outbox.queue.upkeep.erasure import Erasure
from outbox.webhooks.secrets import KeyRing

CYCLE_SECONDS = 10.0
"""After this time records wait until what was erased before is complete."""
PAGE = 100
AT_ONCE = 10
"""Erasures that one transaction ends."""
REQUESTS = 100
"""Requests to erase events, which are done, that one transaction deletes."""
REST_TIMES = 9
"""After the files were cleaned, so many times as long passes before they are cleaned again."""
INDEXED = (
    "contacts", "customers", "customer_emails", "customer_identities", "orders", "idempotency",
)  # fmt: skip
TABLES = (
    *(Scrubbed(table, indexed=True) for table in INDEXED),
    *map(
        Scrubbed,
        (
            "contact_tags", "activities", "customer_addresses", "customer_tokens",
            "queued_mails", "reviews", "carts", "checkouts", "modal_coupons", "deals", "tasks",
            "quotes", "invoices", "import_lines", "import_faults", "import_faulty_lines", "events",
            "deliveries", "attempts", "erasures", "person_erasures",
        ),
    ),
)  # fmt: skip
"""The tables that may hold a person."""

log = structlog.get_logger("gateway")


class Persons:
    """Erases persons. Run one at a time; a run may be interrupted anywhere."""

    def __init__(self, db: Database, ring: KeyRing) -> None:
        self._db = db
        self._ring = ring
        self._log = Erasure(db)
        self._pace = JobPace(db.meter, 1, clock=db.clock)
        self._rest_until = 0.0
        self._ahead: dict[str, Ahead] = {}

    async def any_open(self) -> bool:
        """Return whether there is anything to erase."""
        return await self._db.read(person_erasures.any_open) or await self._log.any_open()

    async def run_once(self) -> None:
        """Erase as far as possible; what waits for a delivery or a reader is left.

        An error in one erasure stops no other; the first one is raised at the end.
        """
        errors: list[Exception] = []
        failed: set[str] = set()
        more = True
        while more:
            more = await self._records(errors, failed)
            try:
                await self._log.run_once()
            except DatabaseUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - raised at the end of the run
                errors.append(error)
            await self._end()
        if errors:
            raise errors[0]

    async def _records(self, errors: list[Exception], failed: set[str]) -> bool:
        """Erase records and responses for CYCLE_SECONDS; return whether some are left."""
        clock = self._db.clock
        began = clock.monotonic()
        while ids := await self._db.read(person_erasures.work, failed):
            before, self._ahead = self._ahead, {}
            for erasure_id in ids:
                try:
                    async with self._pace.step():
                        self._ahead[erasure_id] = await progress.advance(
                            self._db, erasure_id, before.get(erasure_id, Ahead())
                        )
                except Exception as error:  # noqa: BLE001 - raised at the end of the run
                    if isinstance(error, DatabaseUnavailable) and await self._put_aside(erasure_id):
                        continue
                    log.error("erasure_failed", erasure=erasure_id, error=type(error).__name__)
                    errors.append(error)
                    failed.add(erasure_id)
            if clock.monotonic() - began > CYCLE_SECONDS:
                return True
        return False

    async def _put_aside(self, erasure_id: str) -> bool:
        """Halve the units of an erasure, so that others go first; return False if they are small.

        Raises DatabaseUnavailable when it is not the unit that was too much.
        """
        log.warning("erasure_put_aside", erasure=erasure_id)
        return await self._db.write(person_erasures.put_aside, erasure_id)

    async def _end(self) -> None:
        """Complete the erasures whose events and files hold nothing any more."""
        await self._pages("log", self._clear)
        cleared: list[list[str]] = []

        async def note(ids: list[str]) -> None:
            cleared.append(ids)

        await self._pages("files", note)
        if cleared and await self._scrub():
            for ids in cleared:
                for some in _parts(ids):
                    await self._db.write(complete, some, self._ring)

    async def _scrub(self) -> bool:
        """Clean the files, for a tenth of the time at most; return False to try again later."""
        clock = self._db.clock
        began = clock.monotonic()
        if began < self._rest_until:
            return False
        done = await self._db.scrub(TABLES)
        ended = clock.monotonic()
        self._rest_until = ended + REST_TIMES * (ended - began)
        return done

    async def _pages(self, stage: Stage, work: Callable[[list[str]], Awaitable[None]]) -> None:
        after = ""
        while True:
            ids = await self._db.read(person_erasures.in_stage, stage, after, PAGE)
            if ids:
                await work(ids)
            if len(ids) < PAGE:
                return
            after = ids[-1]

    async def _clear(self, ids: list[str]) -> None:
        for some in _parts(ids):
            left = some
            while left:
                left = await self._db.write(clear, left)


def _parts(ids: list[str]) -> list[list[str]]:
    """Divide ids of erasures into lists for one transaction each."""
    return [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]


async def clear(tx: Tx, ids: list[str]) -> list[str]:
    """Forget who the persons are whose events are erased; note the counts of the log.

    Return those that have more of the log than one transaction takes.
    """
    waiting = await erasure_requests.undone(tx, ids)
    open_, room = await person_erasures.some(tx, ids, "log"), REQUESTS
    for erasure in open_:
        if erasure.id in waiting:
            continue
        if room <= 0:
            return [one.id for one in open_ if one.id >= erasure.id]
        taken = await erasure_requests.take(tx, erasure.id, room)
        over = len(taken) < room
        room -= len(taken)
        await person_erasures.save(
            tx, erasure, stage="files" if over else "log", person=None if over else erasure.person,
            erased={
                "events": sum(one.events for one in taken),
                "deliveries": sum(one.deliveries for one in taken),
                "attempts": sum(one.answers for one in taken),
            },
        )  # fmt: skip
        if not over:
            return [one.id for one in open_ if one.id >= erasure.id]
    return []


async def complete(tx: Tx, ids: list[str], ring: KeyRing) -> None:
    """Make the certificates of erasures, and tell the webhooks that want to know."""
    for erasure in await person_erasures.some(tx, ids, "files"):
        seal = certificates.seal(erasure, tx.now, ring)
        await person_erasures.seal(tx, erasure.id, tx.now, seal, ring.newest)
        await owner_reports.person_erased(
            tx, erasure.owner_id, erasure.id, erasure.records, erasure.requested_at
        )
