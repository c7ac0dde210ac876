"""Operational webhooks in the console, and the banner about webhooks in trouble."""

import json
import re
from typing import Any

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks.samples import sample
from gateway.domain.webhooks.settings import SETTINGS
from outbox import webhooks
from outbox.database.transaction import Tx
from outbox.events import enqueue
from outbox.events.body import message
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state import operational
from outbox.queue.state.deliveries import Capacity
from outbox.webhooks.operational import MOST, NAMES
from tests.architecture.tree import ROOT
from tests.gateway.cli.test_replay import run
from tests.support.console import Guest
from tests.support.drain import rows

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"
NEW = f"{LIST}/new?kind=operational"


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


async def test_each_kind_has_its_own_events(maria: Guest) -> None:
    form, usual = await maria.get(NEW), await maria.get(f"{LIST}/new")
    assert [f'value="{name}" checked' in form.html for name in NAMES] == [True] * len(NAMES)
    assert not any(f'value="{name}"' in form.html for name in EVENT_NAMES)
    assert not any(f'value="{name}"' in usual.html for name in NAMES)
    # Without proxies of the operator there is nothing to choose.
    for setting in {setting.name for setting in SETTINGS} - {"proxy"}:
        assert f'name="{setting}"' in usual.html, setting
    for kind, event in (("operational", "contact.created"), ("", "endpoint.failing")):
        page = await maria.submit(LIST, at=f"{LIST}/new", kind=kind, url=URL, events=[event])
        assert (page.status, "There is no event" in page.html) == (400, True)
    assert not await maria.site.db.read(rows, "select 1 from webhooks")
    # And a webhook keeps its kind.
    page = await maria.webhook(URL)
    where = f"{LIST}/{page.id}"
    changed = await maria.submit(
        where, at=f"{where}/edit", kind="operational", url=URL, events=["endpoint.failing"]
    )
    assert changed.status == 400
    assert (await maria.submit(f"{where}/test", at=where, event="endpoint.failing")).status == 400


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


def test_samples_have_the_fields_of_real_events_and_stand_on_the_page_for_receivers() -> None:
    webhook = {
        "id": "w", "url": URL, "description": None, "state": "active", "failures": 1,
        "failing_since": 1, "last_success_at": 1, "last_outcome": None, "last_status": None,
    }  # fmt: skip
    for name in NAMES[:3]:
        real = operational.endpoint(webhook, "timeout")
        assert list(sample(name, "w", 10**15)) == list(real)
    page = (ROOT / "docs/reference/bodies.md").read_text()
    for shown in ("endpoint.disabled", "delivery.exhausted"):
        [line] = re.findall(rf'^\{{"event":"{shown}".*$', page, re.M)
        body = json.loads(line)
        now = body["timestamp"] * 1_000_000
        assert line.encode() == message(shown, now, sample(shown, body["data"]["id"], now))


async def test_every_page_names_the_webhooks_in_trouble(maria: Guest, rui: Guest) -> None:
    changes = {
        "gone": "state = 'disabled', disabled_reason = 'gone'",
        "failed": "state = 'disabled', disabled_reason = 'failing'",
        "failing": "circuit = 'open'",
        "fine": "failures = 0",
        "paused": "circuit = 'open', state = 'paused'",
    }
    ids = {name: (await maria.webhook(f"{URL}/{name}")).id for name in changes}
    db = maria.site.db
    assert (await maria.get("/console/keys")).test_id("troubles") is None
    for name, change in changes.items():
        await db.write(run, f"update webhooks set {change} where id = $1", ids[name])

    def named(html: str) -> tuple[list[str], str]:
        banner = html.partition('data-testid="troubles"')[2].partition("</section>")[0]
        links = [name for name, one in ids.items() if f'href="{LIST}/{one}"' in banner]
        return links, " ".join(re.sub("<[^>]*>", "", banner).split())

    for path in ("/console", LIST, "/console/keys", f"{LIST}/{ids['fine']}"):
        links, words = named((await maria.get(path)).html)
        assert links == ["gone", "failed", "failing"], path
        assert f"410 Gone: {URL}/gone. Events are parked." in words
        assert f"for five days: {URL}/failed. Events are parked." in words
        assert f"Failing repeatedly: {URL}/failing. Deliveries wait" in words
    assert named((await maria.get(f"{LIST}/{ids['gone']}")).html)[0] == ["failed", "failing"]
    assert (await rui.get("/console")).test_id("troubles") is None
    assert "troubles" not in (await maria.get(LIST, HX_Request="true")).html
    await db.write(run, "update webhooks set state = 'disabled'")
    assert "More webhooks in trouble: 2." in (await maria.get("/console/keys")).html
