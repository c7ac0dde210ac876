"""Operational webhooks in the console, and the banner about webhooks in trouble."""

import json
import re
from typing import Any

import pytest

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks.samples import sample
from outbox import webhooks
from outbox.database.transaction import Row, Tx
from outbox.events import enqueue
from outbox.events.body import message
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state import operational
from outbox.queue.state.deliveries import Capacity
from outbox.webhooks.operational import MOST, NAMES, Name
from tests.architecture.tree import ROOT
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


@pytest.mark.parametrize(
    ("kind", "event"), [("operational", "contact.created"), ("", "endpoint.failing")]
)
async def test_each_kind_has_its_own_events(maria: Guest, kind: str, event: str) -> None:
    page = await maria.submit(LIST, at=f"{LIST}/new", kind=kind, url=URL, events=[event])
    assert page.status == 400
    assert "There is no event" in page.html
    assert not await maria.site.db.read(rows, "select 1 from webhooks")


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


def test_samples_have_the_fields_of_real_events() -> None:
    webhook = {
        "id": "w", "url": URL, "description": None, "state": "active", "failures": 1,
        "failing_since": 1, "last_success_at": 1, "last_outcome": None, "last_status": None,
    }  # fmt: skip
    for name in NAMES[:3]:
        real = operational.endpoint(webhook, "timeout")
        assert list(sample(name, "w", 10**15)) == list(real)
    assert sample("delivery.exhausted", "d", 10**15)["id"] == "d"


@pytest.mark.parametrize("name", ["endpoint.disabled", "delivery.exhausted"])
def test_the_page_for_receivers_shows_what_is_sent(name: Name) -> None:
    [line] = re.findall(
        rf'^\{{"event":"{name}".*$',
        (ROOT / "docs/reference/bodies.md").read_text(),
        re.M,
    )
    body = json.loads(line)
    now = body["timestamp"] * 1_000_000
    data = sample(name, body["data"]["id"], now)
    assert line.encode() == message(name, now, data)


async def test_every_page_names_the_webhooks_in_trouble(maria: Guest, rui: Guest) -> None:
    gone, failed, failing, fine, paused = [
        (await maria.webhook(f"{URL}/{name}")).id
        for name in ("gone", "failed", "failing", "fine", "paused")
    ]
    db = maria.site.db
    assert (await maria.get("/console/keys")).test_id("troubles") is None
    disable = "update webhooks set state = 'disabled', disabled_reason = $2 where id = $1"
    await db.write(run, disable, gone, "gone")
    await db.write(run, disable, failed, "failing")
    await db.write(run, "update webhooks set circuit = 'open' where id = $1", failing)
    await db.write(
        run, "update webhooks set circuit = 'open', state = 'paused' where id = $1", paused
    )
    for path in ("/console", LIST, "/console/keys", "/console/account", f"{LIST}/{fine}"):
        page = await maria.get(path)
        banner = page.html.partition('data-testid="troubles"')[2].partition("</section>")[0]
        links = [f'href="{LIST}/{one}"' in banner for one in (gone, failed, failing, fine, paused)]
        assert links == [True, True, True, False, False], path
        words = " ".join(re.sub("<[^>]*>", "", banner).split())
        assert f"410 Gone: {URL}/gone. Events are parked." in words
        assert f"for five days: {URL}/failed. Events are parked." in words
        assert f"Failing repeatedly: {URL}/failing. Deliveries wait" in words
    own = await maria.get(f"{LIST}/{gone}")
    banner = own.html.partition('data-testid="troubles"')[2].partition("</section>")[0]
    assert f'href="{LIST}/{gone}"' not in banner
    assert f'href="{LIST}/{failed}"' in banner
    assert (await rui.get("/console")).test_id("troubles") is None
    part = await maria.get(LIST, HX_Request="true")
    assert "troubles" not in part.html


async def test_the_banner_counts_what_it_does_not_name(maria: Guest) -> None:
    for number in range(5):
        await maria.webhook(f"{URL}/{number}")
    await maria.site.db.write(run, "update webhooks set state = 'disabled'")
    assert "More webhooks in trouble: 2." in (await maria.get("/console/keys")).html
