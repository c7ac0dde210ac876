"""Recover and backfill jobs in the console: asked for, counted, confirmed, watched, cancelled."""

from __future__ import annotations

import re
from typing import Any

import pytest

from gateway.records.values import dates
from outbox.database.transaction import Database
from outbox.queue.replays import jobs
from outbox.worker.recovering import Recovering
from tests.gateway.console.deliveries.test_steering import states, waiting
from tests.support.console import Guest
from tests.support.drain import rows, run
from tests.support.rest import Person, RestApi
from tests.support.site import Site

HOUR = 3_600_000_000


async def finish(db: Database, job_id: str) -> None:
    """Run the job as the leader does, a second of its rate in each step."""
    while (job := await db.read(jobs.one, job_id)) is not None and job.state == "running":
        await db.write(run, "update jobs set paced_at = paced_at - $1", 1_000_000)
        job = await db.read(jobs.one, job_id)
        assert job is not None
        await Recovering(db).step(job)


def since(site: Site, hours: int = 1) -> str:
    return dates.show(site.db.clock.wall() - hours * HOUR)


async def test_failed_deliveries_are_recovered_from_form_to_end(
    console: Site, maria: Guest
) -> None:
    webhook_id, _ = await waiting(console, maria, 4, "exhausted", "dead", "delivered")
    await console.db.write(run, "update outbox_state set seq = 1000")
    path = f"/console/webhooks/{webhook_id}/recover"
    assert f'href="{path}"' in (await maria.get(f"/console/webhooks/{webhook_id}")).html
    page = await maria.get(path)
    assert page.html.count(" checked") == 3
    assert 'type="datetime-local"' in page.html
    fields: dict[str, Any] = {
        "kind": "recover", "ends": ["exhausted", "gone", "dead"], "since": since(console),
        "until": "", "rate": "1",
    }  # fmt: skip
    asked = await maria.submit(path, **fields)
    assert asked.test_id("job-total") == "Will create 2 deliveries."
    assert "At 1 per second it takes about 2 s." in asked.html
    assert "accepted" not in asked.html
    assert len(await states(console.db, webhook_id)) == 4
    hidden = re.findall('type="hidden" name="([a-z_]+)" value="([^"]*)"', asked.html)
    started = await maria.post(path, hidden)
    assert "Job started." in started.html
    assert started.test_id("job-progress") == "0 of 2"
    assert 'hx-trigger="every 1s"' in started.html
    await finish(console.db, started.id)
    page = await maria.get(f"/console/jobs/{started.id}")
    assert page.test_id("job-made") == "2"
    assert "every 1s" not in page.html
    assert len(await states(console.db, webhook_id)) == 6
    assert f'href="/console/jobs/{started.id}"' in (await maria.get(path)).html
    nothing = await maria.submit(path, **fields)
    assert "There is nothing to send" in nothing.html


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Europe/Berlin"])
async def test_times_at_the_ends_of_the_calendar_are_times(
    console: Site, maria: Guest, zone: str
) -> None:
    """The zone of the account may lead out of the years 1 to 9999."""
    webhook_id, _ = await waiting(console, maria, 1, "exhausted")
    await console.db.write(run, "update outbox_state set seq = 1000")
    [user] = await console.db.read(rows, "select id from users where email = 'maria@example.com'")
    await RestApi(console).move(Person(console.http, user["id"], {}), zone)
    path, west = f"/console/webhooks/{webhook_id}/recover", zone == "America/Sao_Paulo"
    first, last = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"
    page = await maria.get(f"{path}?since={first}&until={last}&ends=exhausted&rate=1")
    shown = re.findall('type="datetime-local"[^>]* value="([^"]*)"', page.html)
    assert shown == (
        ["0001-01-01T00:00", "9999-12-31T20:59:59"] if west
        else ["0001-01-01T00:53:28", "9999-12-31T23:59:59"]
    )  # fmt: skip
    asked = await maria.submit(path, ends="exhausted", since=first, until=last, rate="1")
    assert asked.test_id("job-total") == "Will create 1 delivery."
    refused = await maria.submit(path, ends="exhausted", since=last, until=first, rate="1")
    assert refused.status == 400
    page = await maria.get(f"{path}?since=%26rate%3D7&rate=5")
    assert ('value="&amp;rate=7"' in page.html, 'value="5"' in page.html) == (True, True)
    for lists in ("webhooks/{id}/deliveries", "deliveries", "events"):
        where = f"/console/{lists.replace('{id}', webhook_id)}?since={first}&until={last}"
        assert (await maria.get(where)).status == 200
        assert (await maria.get(where.replace(first, last))).status == 200


async def test_what_was_accepted_is_sent_again_after_a_question_of_its_own(
    console: Site, maria: Guest
) -> None:
    webhook_id, _ = await waiting(console, maria, 1, "delivered")
    await console.db.write(run, "update outbox_state set seq = 1000")
    path = f"/console/webhooks/{webhook_id}/recover"
    fields: dict[str, Any] = {
        "kind": "recover", "ends": "delivered", "since": since(console), "rate": "5",
    }  # fmt: skip
    for confirmed in ("", "count", "yes"):
        asked = await maria.submit(path, confirmed=confirmed, **fields)
        assert "get them again" in asked.html
        assert 'name="confirmed" value="twice"' in asked.html
    done = await maria.submit(path, confirmed="twice", **fields)
    assert done.path.startswith("/console/jobs/")


async def test_past_events_that_may_have_arrived_are_left_out_and_the_page_says_so(
    console: Site, maria: Guest
) -> None:
    webhook_id, _ = await waiting(console, maria, 3, "delivered")
    await console.db.write(run, "update outbox_state set seq = 1000")
    await console.db.write(run, "delete from deliveries")
    await console.db.write(run, "update events set name = 'contact.created'")
    [row] = await console.db.read(
        rows, "select seq, occurred_at from events order by seq limit 1 offset 1"
    )
    await console.db.write(run, "insert into forgotten values ($1, $2)", webhook_id, row["seq"])
    path = f"/console/webhooks/{webhook_id}/recover"
    assert "deleted 30 days after they ended" in (await maria.get(f"{path}?kind=backfill")).html
    assert "deleted 30 days" not in (await maria.get(path)).html
    fields: dict[str, Any] = {"kind": "backfill", "since": since(console), "rate": "5"}
    asked = await maria.submit(path, **fields)
    assert asked.test_id("job-total") == "Will create 1 delivery."
    assert "no longer shows whether these arrived" in (asked.test_id("left-out") or "")
    later = await maria.submit(path, **fields | {"since": dates.show(row["occurred_at"] + 1_000)})
    assert "left-out" not in later.html


async def test_a_job_is_cancelled_and_one_that_cannot_run_says_why(
    console: Site, maria: Guest
) -> None:
    webhook_id, _ = await waiting(console, maria, 1, "dead")
    path = f"/console/webhooks/{webhook_id}/recover"
    fields: dict[str, Any] = {
        "kind": "recover", "ends": "dead", "since": since(console), "rate": "5",
        "confirmed": "count",
    }  # fmt: skip
    where = f"/console/jobs/{(await maria.submit(path, **fields)).id}"
    done = await maria.submit(f"{where}/cancel", at=where)
    assert "Job canceled." in done.html
    assert (await maria.submit(f"{where}/cancel", at="/console/webhooks/new")).status == 409
    job = await maria.submit(path, **fields)
    await console.db.write(run, "update jobs set names = '{'")
    await Recovering(console.db).run_once()
    page = await maria.get(f"/console/jobs/{job.id}")
    assert "stored in a damaged row" in (page.test_id("job-reason") or "")
    assert job.id in (await maria.get(path)).html


async def test_a_job_at_a_paused_webhook_says_that_it_waits(console: Site, maria: Guest) -> None:
    webhook_id, _ = await waiting(console, maria, 1, "dead")
    here = f"/console/webhooks/{webhook_id}"
    await maria.submit(f"{here}/pause", at=here)
    fields: dict[str, Any] = {
        "kind": "recover", "ends": "dead", "since": since(console), "rate": "5",
    }  # fmt: skip
    assert "waits until somebody activates it" in (await maria.get(f"{here}/recover")).html
    job = await maria.submit(f"{here}/recover", confirmed="count", **fields)
    assert "Waits until somebody activates the webhook." in job.html


async def test_a_fault_names_its_field_and_starts_nothing(console: Site, maria: Guest) -> None:
    webhook_id, _ = await waiting(console, maria, 1, "dead")
    fields: dict[str, Any] = {
        "kind": "recover", "ends": ["dead"], "since": since(console), "until": "", "rate": "5",
        "confirmed": "count",
    }  # fmt: skip
    wrong: list[tuple[str, Any, str]] = [
        ("since", "yesterday", "Enter a date and a time."),
        ("since", "", "Enter a date and a time."),
        ("since", "2999-01-01T00:00", "must lie in the past"),
        ("until", "1999-01-01T00:00", "must lie in the past"),
        ("until", "2026-01-01T00:00+01:00", "Enter a date and a time."),
        *(("rate", rate, "from 1 to 1,000") for rate in ("0", "1001", "²", "0" * 9, "1" * 5000)),
        ("ends", [], "Select at least one."),
        ("ends", ["everything"], "Select at least one."),
    ]
    for name, value, says in wrong:
        page = await maria.submit(
            f"/console/webhooks/{webhook_id}/recover", **(fields | {name: value})
        )
        assert (page.status, says in page.html) == (400, True), (name, value)
    assert await console.db.read(rows, "select id from jobs") == []


async def test_too_many_jobs_are_refused(console: Site, maria: Guest) -> None:
    webhook_id, _ = await waiting(console, maria, 1, "dead")
    path = f"/console/webhooks/{webhook_id}/recover"
    fields: dict[str, Any] = {
        "kind": "recover", "ends": "dead", "since": since(console), "rate": "5",
        "confirmed": "count",
    }  # fmt: skip
    for _ in range(jobs.MOST_RUNNING):
        assert (await maria.submit(path, **fields)).status == 200
    page = await maria.submit(path, **fields)
    assert page.status == 409
    assert "10 jobs run already" in page.html
