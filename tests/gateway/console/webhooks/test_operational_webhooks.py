"""Operational webhooks in the console, and the banner about webhooks in trouble."""

from typing import Any

from gateway.domain.catalogue import EVENT_NAMES
from outbox import webhooks
from outbox.database.transaction import Row, Tx
from outbox.events import enqueue
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.deliveries import Capacity
from outbox.webhooks.operational import MOST, NAMES
from tests.support.console import Guest

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"
NEW = f"{LIST}/new?kind=operational"


async def rows(tx: Tx, sql: str, *args: object) -> list[Row]:
    return await tx.all(sql, *args)


async def run(tx: Tx, sql: str, *args: object) -> int:
    return await tx.run(sql, *args)


async def operational_webhook(guest: Guest, *events: str, url: str = URL) -> Any:
    return await guest.submit(
        LIST, at=NEW, kind="operational", url=url, events=list(events or NAMES)
    )


async def test_its_deliveries_are_found_by_event(maria: Guest) -> None:
    page = await operational_webhook(maria)
    await maria.site.db.write(told, page.id)
    await maria.site.db.write(fan_out, Capacity("node", "none", 0, 0, 0, {}, 0))
    [row] = await maria.site.db.read(rows, "select id from deliveries")
    path = "/console/deliveries?event="
    assert f"d-{row['id']}" in (await maria.get(f"{path}endpoint.failing")).html
    assert f"d-{row['id']}" not in (await maria.get(f"{path}endpoint.disabled")).html
    assert f"d-{row['id']}" not in (await maria.get(f"{path}contact.created")).html


async def told(tx: Tx, webhook_id: str) -> str:
    """Write an event about another webhook for this one; return its id."""
    webhook = await webhooks.one(tx, webhook_id)
    assert webhook is not None
    return enqueue(
        tx, owner_id=webhook.owner_id, name="endpoint.failing", record_id="r", record_version=1,
        data={}, webhook_id=webhook_id, about_id="another",
    )  # fmt: skip


async def test_a_webhook_keeps_its_kind(maria: Guest) -> None:
    page = await maria.webhook(URL)
    where = f"{LIST}/{page.id}"
    changed = await maria.submit(
        where, at=f"{where}/edit", kind="operational", url=URL, events=["endpoint.failing"]
    )
    assert changed.status == 400
    tested = await maria.submit(f"{where}/test", at=where, event="endpoint.failing")
    assert tested.status == 400


async def test_operational_webhooks_are_few(maria: Guest) -> None:
    for _ in range(MOST):
        assert (await operational_webhook(maria)).status == 200
    refused = await operational_webhook(maria)
    assert refused.status == 409
    assert f"You have {MOST} operational webhooks" in refused.html


async def test_the_api_lists_them_and_its_events_stay(maria: Guest) -> None:
    await operational_webhook(maria, "endpoint.failing")
    user_id = (await maria.site.db.read(rows, "select id from users"))[0]["id"]
    key = await maria.site.key(user_id)
    async with maria.site.http.get("/api/webhooks", headers={"X-API-Key": key}) as answer:
        found = await answer.json()
    assert [one["events"] for one in found["data"]] == [["endpoint.failing"]]
    assert found["availableEvents"] == list(EVENT_NAMES)


async def test_the_banner_counts_what_it_does_not_name(maria: Guest) -> None:
    for number in range(5):
        await maria.webhook(f"{URL}/{number}")
    await maria.site.db.write(run, "update webhooks set state = 'disabled'")
    assert "More webhooks in trouble: 2." in (await maria.get("/console/keys")).html
