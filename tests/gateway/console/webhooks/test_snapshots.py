"""Snapshots: a delivery for each record as it is, started in the console, beside the changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.domain.catalogue import EVENTS
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.webhooks import copies
from gateway.records import actions
from gateway.records.audit import Actor
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.replays import jobs, snapshot_steps
from outbox.queue.replays.jobs import Job
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.worker.recovering import Recovering
from outbox.worker.windows import MOST_BYTES
from tests.support.console import Guest
from tests.support.crm_rows import add_contacts
from tests.support.drain import rows, run
from tests.support.site import Site
from tests.support.stocked import stock
from tests.support.waiting import until

NONE = Capacity("node", "none", 0, 0, 0, {}, MOST_BYTES)
URL = "http://127.0.0.1:9999/"


async def step(db: Database, job_id: str) -> Job:
    """Let a second pass for the job's rate, and take a step, and fan out."""
    await db.write(run, "update jobs set paced_at = paced_at - 1000000")
    job = await db.read(jobs.one, job_id)
    assert job is not None
    await Recovering(db, copies.read).step(job)
    await db.write(fan_out, NONE)
    job = await db.read(jobs.one, job_id)
    assert job is not None
    return job


async def finish(db: Database, job_id: str) -> Job:
    while (job := await step(db, job_id)).state == "running":
        # A receiver that takes all at once.
        await db.write(run, "update deliveries set state = 'delivered' where state = 'ready'")
    return job


async def owner(db: Database) -> str:
    """Return the id of Maria."""
    [row] = await db.read(rows, "select id from users where email = 'maria@example.com'")
    return str(row["id"])


async def made(db: Database, job_id: str) -> list[dict[str, Any]]:
    query = """
    select e.name, e.record_id, e.record_version, e.webhook_id, e.body, d.origin
    from events e join deliveries d on d.event_id = e.id where e.about_id = $1 order by e.pos
    """
    return [
        {**dict(row), "data": json.loads(bytes(row["body"]))["data"]}
        for row in await db.read(rows, query, job_id)
    ]


async def start(maria: Guest, path: str, **fields: Any) -> str:
    started = await maria.submit(f"{path}/snapshot", **fields)
    assert "Job started." in started.html
    return started.id


async def begun(maria: Guest, count: int, rate: str = "1000", **webhook: Any) -> tuple[str, str]:
    """Start a snapshot of `count` contacts; return the path of the webhook, and the job."""
    path = f"/console/webhooks/{(await maria.webhook(URL, 'contact.created', **webhook)).id}"
    await maria.site.db.write(add_contacts, await owner(maria.site.db), count, "0" * 24)
    return path, await start(maria, path, names="contact.created", rate=rate)


async def test_each_record_is_sent_once_with_its_version_and_fields(
    console: Site, maria: Guest
) -> None:
    db = console.db
    webhook = await maria.webhook(URL, *copies.SENT)
    await stock(db, await owner(db), 3)
    other = await console.user("other@example.com")
    await stock(db, other, 1, first=3)
    await db.write(run, "update contacts set version = 4 where id = (select min(id) from contacts)")
    path = f"/console/webhooks/{webhook.id}"
    assert f'href="{path}/snapshot"' in (await maria.get(path)).html
    page = await maria.get(f"{path}/snapshot")
    assert page.html.count(" checked") == len(copies.SENT)
    assert page.html.count("3 records") == len(copies.SENT)
    job_id = await start(maria, path, names=list(copies.SENT), rate="1000")
    job = await finish(db, job_id)
    assert (job.state, job.made, job.total) == ("done", 3 * len(copies.SENT), job.made)
    events = await made(db, job_id)
    assert [event["name"] for event in events] == [n for n in copies.SENT for _ in range(3)]
    for event in events:
        assert tuple(event["data"]) == EVENTS[event["name"]]
        assert event["data"]["id"] == event["record_id"]
        assert (event["webhook_id"], event["origin"]) == (webhook.id, "event")
    for name, resource in copies.SENT.items():
        stored = await db.read(
            rows, f"select id, version from {resource.table} where owner_id = $1 order by id",
            await owner(db),
        )  # fmt: skip
        sent = [(e["record_id"], e["record_version"]) for e in events if e["name"] == name]
        assert sent == [(row["id"], row["version"]) for row in stored]
    page = await maria.get(f"/console/jobs/{job_id}")
    assert page.test_id("job-made") == str(len(events))
    # The feed is what happened; nothing happened to these records.
    assert await db.read(rows, "select id from events where webhook_id is null") == []


async def test_a_new_webhook_starts_with_everything(console: Site, maria: Guest) -> None:
    await console.db.write(add_contacts, await owner(console.db), 3, "0" * 24)
    page = "/console/webhooks/new"
    refused = await maria.submit(
        "/console/webhooks", at=page, url=URL, events="contact.deleted", snapshot="1"
    )
    assert refused.status == 400
    assert "subscribe to those of the records" in refused.html
    assert await console.db.read(rows, "select id from webhooks") == []
    await maria.submit(
        "/console/webhooks", at=page, url=URL, events=["contact.created", "deal.updated"],
        snapshot="1",
    )  # fmt: skip
    [row] = await console.db.read(rows, "select id, kind, names, total from jobs")
    assert (row["kind"], row["names"], row["total"]) == ("snapshot", '["contact.created"]', 3)
    assert (await finish(console.db, row["id"])).made == 3


async def test_a_wrong_snapshot_is_refused(console: Site, maria: Guest) -> None:
    webhook = await maria.webhook(URL, "contact.created", "deal.updated")
    path = f"/console/webhooks/{webhook.id}/snapshot"
    wrong: Sequence[tuple[dict[str, Any], str]] = (
        ({"rate": "0", "names": "contact.created"}, "whole number from 1 to 1,000"),
        ({"rate": "000000100000", "names": "contact.created"}, "whole number from 1 to 1,000"),
        ({"rate": "5"}, "Select at least one."),
    )
    for fields, told in wrong:
        page = await maria.submit(path, **fields)
        assert page.status == 400
        assert told in page.html
    # `deal.created` is not of its subscription.
    assert (await maria.submit(path, rate="5", names="deal.created")).status == 400
    assert await console.db.read(rows, "select id from jobs") == []
    silent = await maria.webhook(URL, "deal.updated")
    page = await maria.get(f"/console/webhooks/{silent.id}/snapshot")
    assert page.test_id("nothing")


async def test_conditions_hold_for_a_snapshot_too(console: Site, maria: Guest) -> None:
    _, job_id = await begun(maria, 4, conditions="name = Ana")
    await console.db.write(
        run, "update contacts set name = 'Ana' where id = (select max(id) from contacts)"
    )
    job = await finish(console.db, job_id)
    assert (job.made, job.refused) == (1, 3)
    assert [event["data"]["name"] for event in await made(console.db, job_id)] == ["Ana"]
    assert "do not meet the conditions" in (await maria.get(f"/console/jobs/{job_id}")).html


async def test_a_cancelled_snapshot_and_a_stopped_webhook_make_nothing_more(
    console: Site, maria: Guest
) -> None:
    db = console.db
    path, job_id = await begun(maria, 150, rate="50")
    assert (await step(db, job_id)).made == 10
    await maria.submit(f"{path}/pause", at=path)
    assert await db.read(jobs.running) == []
    assert (await step(db, job_id)).made == 10
    await maria.submit(f"{path}/activate", parked="all")
    assert (await step(db, job_id)).made == 20
    await maria.submit(f"/console/jobs/{job_id}/cancel", at=f"/console/jobs/{job_id}")
    assert (await step(db, job_id)).made == 20


async def test_two_runs_of_a_snapshot_send_each_record_once(console: Site, maria: Guest) -> None:
    db = console.db
    _, job_id = await begun(maria, 40)
    # The last step was nearly a second in the future: a clock that is set back skips no records.
    await db.write(run, "update jobs set paced_at = $1", db.clock.wall() + 900_000)
    early = await db.read(jobs.one, job_id)
    assert early is not None
    assert await db.write(snapshot_steps.advance, early, copies.read) is None
    await db.write(run, "update jobs set paced_at = created_at - 1000000")
    stale = await db.read(jobs.one, job_id)
    assert stale is not None
    assert await db.write(snapshot_steps.advance, stale, copies.read) is not None
    assert await db.write(snapshot_steps.advance, stale, copies.read) is None
    await finish(db, job_id)
    ids = [event["record_id"] for event in await made(db, job_id)]
    assert len(ids) == len(set(ids)) == 40


LOCKED = """
select 1 as one from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock'
"""


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_record_that_is_read_is_not_deleted_before_its_event_is_there(
    console: Site, maria: Guest
) -> None:
    """An erasure looks for the events that were there when it was requested."""
    db = console.db
    _, job_id = await begun(maria, 1)
    actor = Actor(await owner(db), "session")
    await db.write(run, "update jobs set paced_at = paced_at - 1000000")
    job = await db.read(jobs.one, job_id)
    assert job is not None
    deleting: list[asyncio.Task[object]] = []

    async def slowly(
        tx: Tx, owner_id: str, name: str, after: tuple[int, str], most: int
    ) -> Sequence[snapshot_steps.Copy]:
        found = await copies.read(tx, owner_id, name, after, most)
        deleting.append(
            asyncio.create_task(db.write(actions.remove, actor, CONTACTS, found[0].record_id))
        )
        await until(lambda: db.read(rows, LOCKED))
        assert not deleting[0].done()
        return found

    assert await db.write(snapshot_steps.advance, job, slowly) is not None
    await deleting[0]
    names = [row["name"] for row in await db.read(rows, "select name from events order by pos")]
    assert names == ["contact.created", "contact.deleted"]
