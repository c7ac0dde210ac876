"""The steps of an import whose owner starts it again, beside a runner that is late."""

from __future__ import annotations

from gateway.domain.accounts import users
from gateway.domain.imports import import_jobs, import_steps
from gateway.domain.imports.import_jobs import Import
from gateway.domain.imports.import_options import DEFAULT
from gateway.domain.imports.importing import Importing
from gateway.records.audit import Actor
from outbox.database.transaction import Database, Tx

FIELDS = ["name", "email"]


async def held(tx: Tx, actor: Actor) -> str:
    """Store an import that waits, with one line; return its id."""
    import_id = await import_jobs.begin(tx, actor, "contacts")
    await import_jobs.receive(tx, import_id, [(2, ["Ana", "x"])])
    upload = import_jobs.Upload(
        headings=FIELDS, fields=["", ""], encoding="utf-8", separator=",", shown=[0, 0], lines=1,
        options=DEFAULT, dry_run=False, held=True,
    )  # fmt: skip
    await import_jobs.complete(tx, import_id, upload)
    return import_id


async def test_a_step_of_an_earlier_start_stores_nothing(db: Database) -> None:
    owner_id = await db.write(users.add, email="ana@example.com", name="Ana", password_hash="-")
    actor = Actor(owner_id, "session")
    import_id = await db.write(held, actor)

    async def check(tx: Tx) -> Import:
        return await import_jobs.start(tx, actor, import_id, FIELDS, dry_run=True)

    before = await db.write(check)
    await Importing(db).run_once()
    now = await db.write(check)
    # Another runner has read the import before its first check ended.
    await import_steps.step(db, before)
    assert await db.read(import_jobs.own, actor, import_id) == now
    await Importing(db).run_once()
    after = await db.read(import_jobs.own, actor, import_id)
    assert (after.state, after.done, after.warnings) == ("waiting", 1, 1)
