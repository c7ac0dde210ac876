"""Tests deals and tasks on both engines: running totals and concurrent writes."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from gateway.domain.contacts import tasks
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.tasks import TASKS
from gateway.domain.sales import deals, pipelines
from gateway.domain.sales.deals import DEALS
from gateway.domain.sales.pipelines import PIPELINE
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Resource
from outbox.database.transaction import Database, Tx
from outbox.observer import Observer
from tests.support.records import asked, listed

ANA = Actor("a" * 24, "api_key")


async def made(db: Database, resource: Resource, **body: Any) -> str:
    draft = asked(resource, body, creating=True)
    assert draft.faults == []
    return (await db.write(actions.create, ANA, resource, draft)).id


async def changed(db: Database, resource: Resource, record_id: str, **body: Any) -> None:
    draft = asked(resource, body)
    if resource is DEALS:
        await db.write(deals.change, ANA, record_id, draft)
    else:
        await db.write(actions.change, ANA, resource, record_id, draft)


async def rows(db: Database, sql: str) -> list[tuple[Any, ...]]:
    async def unit(tx: Tx) -> list[tuple[Any, ...]]:
        return [tuple(row[key] for key in row.keys()) for row in await tx.all(sql)]  # noqa: SIM118 - a row is no dict

    return await db.read(unit)


COUNTED = """
select owner_id, coalesce(stage, '') as stage, status, cast(count(*) as bigint) as n,
  cast(sum(value) as bigint) as value
from deals group by owner_id, stage, status order by 1, 2, 3
"""
KEPT = """
select owner_id, stage, status, cast(sum(n) as bigint) as n, cast(sum(value) as bigint) as value
from deal_totals group by owner_id, stage, status order by 1, 2, 3
"""


async def totals_hold(db: Database) -> None:
    """Assert that the running totals equal the counts and have no empty row."""
    assert await rows(db, KEPT) == await rows(db, COUNTED)
    assert await rows(db, "select n from deal_totals where n <= 0") == []


async def test_totals_follow_every_write_of_a_deal(db: Database) -> None:
    ids = [
        await made(db, DEALS, title="D", value=i, stage=stage)
        for i in range(8)
        for stage in (None, "lead", "closing")
    ]
    await totals_hold(db)
    for record_id in ids[:6]:
        await changed(db, DEALS, record_id, stage="lead", value=77.77)
    for record_id in ids[4:9]:
        await changed(db, DEALS, record_id, status="won", stage=None)
    for record_id in ids[3:12]:
        await db.write(actions.remove, ANA, DEALS, record_id)
    await totals_hold(db)

    async def past_the_engine(tx: Tx) -> None:
        await tx.run("update deals set status = 'lost', value = value + 1")
        await tx.run("delete from deals where stage = 'closing'")

    await db.write(past_the_engine)
    await totals_hold(db)
    for record_id in {*ids} - {*ids[3:12]}:
        if (record_id,) in await rows(db, "select id from deals"):
            await db.write(actions.remove, ANA, DEALS, record_id)
    assert await rows(db, "select n from deal_totals") == []


async def test_a_refused_write_changes_no_total(db: Database) -> None:
    await made(db, DEALS, title="D", value=5, stage="lead")

    async def fails(tx: Tx) -> None:
        draft = asked(DEALS, {"title": "E", "value": 9, "stage": "lead"}, creating=True)
        await actions.create(tx, ANA, DEALS, draft)
        raise Refusal("conflict", "No.")

    with pytest.raises(Refusal):
        await db.write(fails)
    await totals_hold(db)
    assert (await db.read(deals.pipeline_stats, ANA)).total_value == 500


class Faults(Observer):
    """A counter of conflicts between transactions."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def fault(self, kind: str) -> None:
        self.seen[kind] += 1


async def test_deals_that_change_stage_in_opposite_directions(db: Database) -> None:
    """Each stage and status has one counter row here, so that all changes conflict."""
    ids: list[str] = []

    async def fill(tx: Tx) -> None:
        ids.clear()
        for i in range(16):
            ids.append(tx.new_id()[:-1] + "0")
            await tx.run(
                "insert into deals (id, owner_id, version, created_at, title, value, currency,"
                " stage, status, contact_ids)"
                " values ($1, $2, 1, $3, 'D', 1, 'BRL', $4, 'open', '[]')",
                ids[-1], ANA.owner_id, tx.now, "ab"[i % 2],
            )  # fmt: skip

    await db.write(fill)
    db.observer = faults = Faults()
    for turn in range(6):
        await asyncio.gather(
            *(
                changed(db, DEALS, record_id, stage="ab"[(i + turn + 1) % 2])
                for i, record_id in enumerate(ids)
            )
        )
    assert faults.seen == {}
    await totals_hold(db)


async def test_totals_are_correct_under_concurrent_writes(db: Database) -> None:
    ids = await asyncio.gather(
        *(made(db, DEALS, title="D", value=i, stage="abc"[i % 3]) for i in range(24))
    )
    await asyncio.gather(
        *(changed(db, DEALS, r, status=s) for r in ids[:12] for s in ("won", "lost", "open")),
        *(changed(db, DEALS, r, stage="z", value=3) for r in ids[6:18]),
        *(db.write(actions.remove, ANA, DEALS, r) for r in ids[18:]),
        *(made(db, DEALS, title="D", value=1) for _ in range(6)),
    )
    await totals_hold(db)
    assert (await db.read(deals.pipeline_stats, ANA)).total_deals == 24


async def test_the_totals_do_not_grow_with_the_deals(db: Database) -> None:
    for i in range(60):
        await made(db, DEALS, title="D", value=1, stage="ab"[i % 2])
    [(n,)] = await rows(db, "select cast(count(*) as bigint) as n from deal_totals")
    # At most 16 rows for each stage and status.
    assert n <= 32


async def test_a_sum_above_64_bits_is_returned(db: Database) -> None:
    """Two stages near the maximum of BIGINT exceed the sums of the engines."""
    for stage in "ab":
        await made(db, DEALS, title="D", value=1, stage=stage)

    async def swell(tx: Tx) -> None:
        await tx.run("update deal_totals set value = $1", 9_000_000_000_000_000_000)

    await db.write(swell)
    found = await db.read(deals.pipeline_stats, ANA)
    assert found.total_value == 18_000_000_000_000_000_000


async def test_concurrent_completions_emit_one_event(db: Database) -> None:
    task = await made(db, TASKS, title="T")
    views = await asyncio.gather(*(db.write(tasks.complete, ANA, task) for _ in range(12)))
    assert {task.version for task in views} == {2}
    assert len({tuple(task.row) for task in views}) == 1
    names = await rows(db, "select name from events order by pos")
    assert names == [("task.created",), ("task.completed",)]


async def test_a_contact_cannot_be_deleted_between_the_check_and_the_write(db: Database) -> None:
    for _ in range(8):
        contact = await made(db, CONTACTS, name="M")
        deal = await made(db, DEALS, title="D", value=1)
        await asyncio.gather(
            db.write(actions.remove, ANA, CONTACTS, contact),
            changed(db, DEALS, deal, contactIds=[contact]),
            *(made(db, DEALS, title="D", value=1, contactIds=[contact]) for _ in range(3)),
            *(made(db, TASKS, title="T", contactId=contact) for _ in range(3)),
            return_exceptions=True,
        )
    dangling = await rows(
        db,
        "select value from deal_contacts where value not in (select id from contacts)"
        " union all select contact_id from tasks where contact_id is not null"
        " union all select contact_ids from deals where contact_ids <> '[]'",
    )
    assert dangling == []


async def test_concurrent_changes_of_a_pipeline_run_one_after_the_other(db: Database) -> None:
    async def put(version: str | None = None, **body: Any) -> int:
        draft, expected = asked(PIPELINE, body), None if version is None else frozenset({version})
        return (await db.write(pipelines.change, ANA, draft, expected)).version

    etags = await asyncio.gather(*(put(stages=[f"s{i}"]) for i in range(8)))
    assert sorted(etags) == list(range(1, 9))
    outcomes = await asyncio.gather(
        *(put("8", stages=[f"t{i}"]) for i in range(6)), return_exceptions=True
    )
    assert outcomes.count(9) == 1
    assert {o.code for o in outcomes if isinstance(o, Refusal)} == {"precondition_failed"}


async def test_changes_of_one_instant_are_listed_once(db: Database) -> None:
    """Many deals share the time of their last change."""

    async def at_once(tx: Tx) -> None:
        for i in range(7):
            draft = asked(DEALS, {"title": str(i), "value": 1}, creating=True)
            await actions.create(tx, ANA, DEALS, draft)

    await db.write(at_once)
    walked: list[str] = []
    query = {"updatedSince": "2000-01-01", "limit": "3"}
    while True:
        found, _, cursor = await listed(db, ANA, DEALS, query)
        walked += [deal["title"] for deal in found.records]
        if cursor is None:
            break
        query["cursor"] = cursor
    assert sorted(walked) == [str(i) for i in range(7)]
