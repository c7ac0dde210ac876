"""A server is made of the parts that it is handed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gateway.app import build_app
from gateway.server.app_keys import KEYRING
from gateway.server.parts import Parts
from outbox.database.transaction import Database
from outbox.queue.replays import jobs
from outbox.queue.replays.jobs import Draft, Job
from outbox.queue.replays.snapshot_steps import Source
from outbox.sending.outcome import Outcome, unanswered
from outbox.sending.send import Sender
from outbox.worker.recovering import Recovering
from outbox.worker.settling import Settling, Write
from tests.support.console import CONFIG
from tests.support.drain import OWNER, add_webhook, make, rows
from tests.support.site import serving
from tests.support.waiting import until_true

URL = "http://127.0.0.1:9/nobody"


class Pretender(Sender):
    """Sends nothing, and reports success."""

    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], *rest: Any, **more: Any
    ) -> Outcome:
        return replace(unanswered("success", "", 0.0), status=200, error=None)


class Counting(Settling):
    """Counts the batches that are written."""

    batches = 0

    async def write(self, first: Write | None = None) -> float | None:
        Counting.batches += bool(len(self))
        return await super().write(first)


class Idle(Recovering):
    """Moves no job on; notes those that it should."""

    def __init__(self, db: Database, source: Source | None, skipped: set[str]) -> None:
        super().__init__(db, source)
        self.skipped = skipped

    async def step(self, job: Job) -> bool:
        self.skipped.add(job.id)
        return True


async def test_a_server_sends_records_and_recovers_with_what_it_is_handed(
    db: Database, duties_look_often: None
) -> None:
    skipped: set[str] = set()
    parts = Parts(sender=Pretender, settling=Counting, recovering=partial(Idle, skipped=skipped))
    async with serving(db, CONFIG, role="all", build=partial(build_app, parts=parts)) as site:
        webhook_id, _ = await add_webhook(db, site.app[KEYRING], URL)
        await db.write(make, "r1")
        delivered = "select id from deliveries where state = 'delivered'"
        await until_true(lambda: db.read(rows, delivered))
        assert Counting.batches
        draft = Draft(("delivered",), None, 0, db.clock.wall(), 1000)
        job_id = await db.write(
            jobs.create, owner_id=OWNER, webhook_id=webhook_id, user_id=OWNER, draft=draft, total=1
        )

        async def asked() -> bool:
            return job_id in skipped

        await until_true(asked)
        assert len(await db.read(rows, delivered)) == 1
