"""Requests and logs that are made to cost much: the console bounds them, and refuses politely."""

from __future__ import annotations

import asyncio
from asyncio import Task
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from outbox.database.fair_limit import Crowded
from outbox.database.transaction import Database, Tx
from outbox.database.unit_limits import SCANS_EACH, SCANS_WAITING
from tests.gateway.console.deliveries.test_deliveries import ended
from tests.support.console import CONFIG, Guest
from tests.support.drain import Inbox
from tests.support.site import Site, serving
from tests.support.waiting import until

NUMBERS = """
with recursive numbers (n) as (select 2 union all select n + 1 from numbers where n < $2)
insert into attempts (owner_id, delivery_id, webhook_id, event_id, number, kind, outcome, status,
  started_at, total_us, address, url, request_headers, response_headers, response_body, truncated,
  node_id)
select owner_id, delivery_id, webhook_id, event_id, n, 'probe', 'http_5xx', 500, started_at,
  total_us, address, url, request_headers, response_headers, response_body, truncated, node_id
from attempts, numbers where delivery_id = $1 and number = 1
"""


@pytest.fixture
async def console(db: Database) -> AsyncIterator[Site]:
    """The gateway with its drain."""
    async with serving(db, CONFIG, role="all") as site:
        yield site


async def repeat(tx: Tx, delivery_id: str, count: int) -> None:
    await tx.run(NUMBERS, delivery_id, count)


async def test_the_page_of_a_delivery_shows_the_latest_of_many_attempts(
    console: Site, maria: Guest, box: Inbox
) -> None:
    """A receiver that is down for days gets hundreds of probes of one delivery."""
    made = await maria.webhook(f"{box.url}/hook")
    at = f"/console/webhooks/{made.id}"
    await maria.submit(f"{at}/test", at=at, event="contact.created")
    [delivery] = await ended(console, made.id)
    path = f"/console/deliveries/{delivery.id}"
    assert "not shown" not in (await maria.get(path)).html
    await console.db.write(repeat, delivery.id, 500)
    shown = await maria.get(path)
    assert shown.html.count('data-testid="attempt"') == 25
    assert 'id="attempt-476"' in shown.html
    assert "Attempts before these, not shown: 475." in shown.html
    assert "Earlier attempts: 488" in shown.html


async def test_a_place_that_no_page_has_is_the_first_one(maria: Guest) -> None:
    for page in ("events", "deliveries"):
        for query in ("", "q=order-1&", "state=waiting&"):
            for after in ("9" * 24, "9" * 18, "0" * 24):
                assert (await maria.get(f"/console/{page}?{query}after={after}")).status == 200


async def test_too_many_lists_at_once_are_told_to_wait(console: Site, maria: Guest) -> None:
    places = console.db._places  # type: ignore[attr-defined]
    user = await console.db.read(_id_of, "maria@example.com")
    over = asyncio.Event()

    async def wait() -> None:
        with suppress(Crowded):
            async with places.place(user):
                await over.wait()

    async with asyncio.TaskGroup() as group:
        started = [group.create_task(wait()) for _ in range(SCANS_EACH + SCANS_WAITING)]
        await until(lambda: places.waiting >= SCANS_WAITING or all(map(Task.done, started)))
        try:
            for path in ("/console/deliveries", "/console/events"):
                page = await maria.get(path)
                assert (page.status, page.headers.get("Retry-After")) == (429, "1")
                assert "Too many searches are running" in page.html
        finally:
            over.set()


async def _id_of(tx: Tx, email: str) -> str:
    row = await tx.one("select id from users where email = $1", email)
    assert row is not None
    return str(row["id"])
