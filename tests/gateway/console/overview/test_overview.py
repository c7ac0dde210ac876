"""The overview and a webhook's charts: the figures are those of the log, failing webhooks first."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from gateway.server.config import Retry
from outbox.database.transaction import Database, Tx
from outbox.durations import HOUR
from outbox.queue.state import attempt_counts
from outbox.queue.state.attempt_counts import LOST, STEP
from tests.support.console import CONFIG, Guest, guest
from tests.support.drain import Inbox, inbox, rows
from tests.support.figures import of_log, stored
from tests.support.process import free_port
from tests.support.site import Site, serving
from tests.support.waiting import until

BODY = re.compile(r'<tr data-step="\d+">.*?</tr>', re.DOTALL)
CELL = re.compile(r'data-label="([^"]+)">([^<]+)<')


@pytest.fixture
async def box() -> AsyncIterator[Inbox]:
    async with inbox() as box:
        yield box


@pytest.fixture
async def running(db: Database) -> AsyncIterator[Site]:
    """A gateway that delivers, with quick retries and an end after the third attempt."""
    quick = msgspec.structs.replace(CONFIG, retry=Retry(schedule=(1, 1)))
    async with serving(db, quick, role="all") as site:
        yield site


def of_table(html: str, label: str) -> int:
    """Return the sum of a column of the table beneath the charts."""
    return sum(
        int(value.replace(",", ""))
        for row in BODY.findall(html)
        for name, value in CELL.findall(row)
        if name == label
    )


async def ended(db: Database) -> None:
    left = """
    select 1 as one from events where seq is null union all
    select 1 from deliveries where state in ('ready', 'in_flight')
    """

    async def none_left() -> bool:
        return not await db.read(rows, left)

    await until(none_left)


async def test_the_figures_are_those_of_the_log(db: Database, running: Site, box: Inbox) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=500 if request.path == "/bad" else 200)

    box.answer = answer
    await running.user()
    async with guest(running) as maria:
        await maria.sign_in()
        urls = (f"{box.url}/good", f"{box.url}/bad", f"http://127.0.0.1:{free_port()}/")
        ids = [(await maria.webhook(url)).id for url in urls]
        for webhook_id in (*ids, ids[0]):
            path = f"/console/webhooks/{webhook_id}"
            await maria.submit(f"{path}/test", at=path, event="contact.created")
        await ended(db)
        log = await db.read(of_log)
        assert await db.read(stored) == log
        for path, of in (
            ("/console", set(ids)), *((f"/console/webhooks/{one}", {one}) for one in ids)
        ):  # fmt: skip
            page = await maria.get(path)
            figures = {
                result: sum(
                    n for (webhook, _, what, name), n in log.items()
                    if name == "count" and what == result and webhook in of
                )
                for result in ("success", "http_5xx", "connect_error", *LOST)
            }  # fmt: skip
            failed = figures["http_5xx"] + figures["connect_error"]
            assert of_table(page.html, "Succeeded") == figures["success"]
            assert of_table(page.html, "Failed") == failed
            assert of_table(page.html, "Given up") == figures["exhausted"]
            if path == "/console":
                assert page.test_id("delivered") == str(figures["success"]) == "2"
                assert (failed, figures["exhausted"]) == (6, 2)
                assert page.test_id("rate") == "25 %"
                assert page.test_id("waiting") == "0"


async def set_up(maria: Guest, db: Database) -> dict[str, str]:
    """Four webhooks of different health."""
    ids = {
        name: (await maria.webhook(f"https://shop.example/{name}")).id
        for name in ("idle", "some", "failing", "disabled", "busy")
    }
    await db.write(_health, ids)
    return ids


async def _health(tx: Tx, ids: dict[str, str]) -> None:
    await tx.run("update webhooks set failures = 5 where id = $1", ids["failing"])
    await tx.run("update webhooks set state = 'disabled' where id = $1", ids["disabled"])
    at = tx.now // HOUR * HOUR
    for name, result, count in (
        ("busy", "success", 900), ("some", "success", 90), ("some", "timeout", 10),
        ("failing", "http_5xx", 3),
    ):  # fmt: skip
        times = [0, 0, count, *[0] * (len(attempt_counts.TIMES) - 3)]
        key = (ids[name], at, result)
        await attempt_counts.add(tx, STEP, {key: [count, 15_000 * count, *times]})


async def test_a_poll_that_finds_nothing_new_is_empty(maria: Guest, db: Database) -> None:
    await set_up(maria, db)
    page = await maria.get("/console")
    [poll] = re.findall(r'id="overview" hx-get="([^"]+)"', page.html)
    again = await maria.get(poll.replace("&amp;", "&"), HX_Request="true")
    assert (again.status, again.html) == (204, "")
    await set_up(maria, db)
    changed = await maria.get(poll.replace("&amp;", "&"), HX_Request="true")
    assert changed.status == 200
    assert changed.html.lstrip().startswith('<div id="overview"')


async def test_figures_that_begin_inside_the_range_say_so(maria: Guest, db: Database) -> None:
    """A database from before the figures has webhooks that are older than the counting."""
    webhook_id = (await maria.webhook("https://shop.example/")).id
    said = "Attempts and events are counted since"
    assert said not in (await maria.get("/console")).html
    # The schema of a long test run is made more than an hour before this test.
    await db.write(_run, "update outbox_state set figures_since = $1", db.clock.wall())
    await db.write(
        _run, "update webhooks set created_at = created_at - $1 where id = $2", HOUR, webhook_id
    )
    assert said in (await maria.get("/console")).html
    assert said in (await maria.get(f"/console/webhooks/{webhook_id}")).html
    await db.write(_run, "update outbox_state set figures_since = figures_since - $1", 90 * HOUR)
    assert said not in (await maria.get("/console")).html


async def _run(tx: Tx, statement: str, *args: object) -> None:
    await tx.run(statement, *args)
