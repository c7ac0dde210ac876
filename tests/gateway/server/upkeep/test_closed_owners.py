"""While a move has closed an owner, or his rows arrive, the duties go on for all others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gateway.cli.moving.moved_rows import QUEUED_MAIL, TABLES
from gateway.domain.audit.audit_retention import AuditRetention
from gateway.domain.catalogue import RESOURCES
from gateway.domain.imports.importing import Importing
from gateway.domain.privacy.persons import Persons
from gateway.domain.product_ownership import OWNERSHIP
from gateway.domain.sales import order_verbs, quotes
from gateway.records import cascades
from gateway.records.cascades import Dependants
from gateway.server.app_keys import KEYRING
from outbox.database.ownership import OUTBOX
from outbox.database.postgres import guards
from outbox.database.postgres.guards import Guarded
from outbox.database.postgres.keys import key_of
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.order import ordering
from outbox.queue.proof import chain_checkpoints
from outbox.queue.replays import jobs
from outbox.queue.replays.snapshot_steps import Copy
from outbox.queue.state.claimed_deliveries import NO_ROOM
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState, State
from outbox.worker.recovering import Recovering
from tests.gateway.domain.sales.test_quotes import in_state, set_until
from tests.gateway.rest.test_imports import upload
from tests.support.checkouts import bought
from tests.support.drain import add_webhook, run
from tests.support.rest import Person, RestApi
from tests.support.shop import open_shop

OPEN = {
    "orders": "status = 'pending'",
    "quotes": "status = 'sent'",
    "imports": "state = 'running'",
    "pending_ends": "true",
    "person_erasures": "stage <> 'done'",
    "erasures": "done_at is null",
    "jobs": "state = 'running'",
    "lanes": "turning",
}
"""What waits for a duty, by its table."""
DELETED_WEBHOOK = """
insert into chain_ends (webhook_id, place, digest, owner_id) values ($1, 1, '', $2)
"""


async def records(
    tx: Tx, owner_id: str, name: str, after: tuple[int, str], most: int
) -> Sequence[Copy]:
    """Return nothing to send, so that a snapshot ends with its first step."""
    return []


async def owner_with_all(api: RestApi, hostname: str) -> Person:
    """Return an owner for whom each duty has something to do."""
    shop = await open_shop(api, hostname)
    owner, db = shop.owner, api.db
    await bought(shop)
    await shop.close()
    await db.write(run, "update orders set expires_at = 1 where owner_id = $1", owner.user_id)
    await set_until(api, await in_state(owner, "sent"), db.clock.wall() - 1, day=False)
    assert (await upload(owner, "contacts", "name\nLia\n")).status == 202
    for verb in ("files", "records", ""):
        contact = (await owner.post("/api/contacts", {"name": "Rui"})).body["id"]
        note = {"relatedType": "contact", "relatedTo": contact, "type": "note", "description": "x"}
        assert (await owner.post("/api/activities", note)).status == 201
        path = f"/api/contacts/{contact}"
        done = await (owner.post(f"{path}/erase", {}) if verb else owner.delete(path))
        assert done.status < 300, done.text
        await db.write(
            run, "update person_erasures set stage = $2 where record_id = $1", contact, verb
        )
    ring = api.site.app[KEYRING]
    webhook_id, _ = await add_webhook(db, ring, "http://127.0.0.1:9/", owner=owner.user_id)
    await db.write(
        jobs.create_snapshot, owner_id=owner.user_id, webhook_id=webhook_id, user_id="maria",
        names=("thing.made",), rate=1000, total=1,
    )  # fmt: skip
    turned, _ = await add_webhook(db, ring, "http://127.0.0.1:9/", owner=owner.user_id)
    await db.write(ordering.begin, turned, True)
    await db.write(run, DELETED_WEBHOOK, hostname, owner.user_id)
    await db.write(fan_out, NO_ROOM)
    return owner


async def close(tx: Tx, owner_id: str, state: State) -> None:
    """Let an owner be closed as a move leaves him that ends in the middle."""
    await owner_moves.stand(tx, owner_id, MoveState(state, "m", "there"))
    for table in TABLES if tx.engine == "postgres" else ():
        guarded = Guarded(table, await key_of(tx, table), table in OUTBOX or table in QUEUED_MAIL)
        statements = (
            guards.at_target(OWNERSHIP, table, owner_id)
            if state == "arriving"
            else guards.at_source(OWNERSHIP, guarded, owner_id)
        )
        for text in (*statements, *(guards.refusing(table) if table in guards.REFUSING else ())):
            if text != guards.free(table):
                await tx.run(text)


async def left(db: Database, owner_id: str) -> dict[str, int]:
    """Return what waits for the duties, and the entries of the audit log."""

    async def unit(tx: Tx) -> dict[str, int]:
        counts = {}
        for table, condition in {**OPEN, "audit": "true"}.items():
            row = await tx.one(
                f"select count(*) as n from {table} where owner_id = $1 and {condition}", owner_id
            )
            counts[table] = 0 if row is None else int(row["n"])
        return counts

    return await db.read(unit)


async def work(api: RestApi) -> None:
    """Run the duties once."""
    db, ring = api.db, api.site.app[KEYRING]
    await AuditRetention(db, days=0).run_once()
    await db.write(order_verbs.expire, 20)
    await db.write(quotes.expire_quotes, 20)
    await Importing(db).run_once()
    await Dependants(db, RESOURCES).run_once()
    for _ in range(2):
        # One that was cleaning files rests afterwards.
        await Persons(db, ring).run_once()
    await Recovering(db, records).run_once()
    await ordering.finish_all(db)


STATES: dict[str, Sequence[State]] = {
    "sqlite": ("leaving", "gone"),
    "postgres": ("resting", "leaving", "gone", "arriving"),
}


async def reopen(db: Database, owner_id: str) -> None:
    """Let an owner be here again."""
    await db.write(owner_moves.stand, owner_id, MoveState())
    for statements in guards.dropped(TABLES, owner_id) if db.engine == "postgres" else ():
        for text in statements:
            if "lock_timeout" not in text:
                await db.write(run, text)


@pytest.mark.slow
async def test_a_closed_owner_holds_up_no_duty_for_others(
    api: RestApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascades, "MOST", 0)
    mover = (await owner_with_all(api, "ana.example")).user_id
    before = await left(api.db, mover)
    assert all(before[table] for table in OPEN), before
    for state in STATES[api.db.engine]:
        other = (await owner_with_all(api, f"{state}.example")).user_id
        await api.db.write(close, mover, state)
        await work(api)
        assert await left(api.db, mover) == before, state
        after = await left(api.db, other)
        assert {table: after[table] for table in OPEN} == dict.fromkeys(OPEN, 0), state
        assert after["audit"] < before["audit"]
        assert mover not in await api.db.read(chain_checkpoints.owners, "", 10)
        await reopen(api.db, mover)
    await work(api)
    after = await left(api.db, mover)
    assert {table: after[table] for table in OPEN} == dict.fromkeys(OPEN, 0)
