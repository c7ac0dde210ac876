"""Operational webhooks in the console, and the banner about webhooks in trouble."""

import json
import re
from typing import Any

from gateway.domain.webhooks.samples import sample
from outbox.events import message
from outbox.queue.state import owner_reports
from outbox.webhooks.operational import MOST, NAMES
from tests.architecture.tree import ROOT
from tests.gateway.cli.test_replay import run
from tests.support.console import Guest

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"
NEW = f"{LIST}/new?kind=operational"


async def operational_webhook(guest: Guest, *events: str, url: str = URL) -> Any:
    return await guest.submit(
        LIST, at=NEW, kind="operational", url=url, events=list(events or NAMES)
    )


async def test_operational_webhooks_are_few(maria: Guest) -> None:
    for _ in range(MOST):
        assert (await operational_webhook(maria)).status == 200
    refused = await operational_webhook(maria)
    assert refused.status == 409
    assert f"You have {MOST} operational webhooks" in refused.html


def test_samples_have_the_fields_of_real_events_and_stand_on_the_page_for_receivers() -> None:
    webhook = {
        "id": "w", "url": URL, "description": None, "state": "active", "failures": 1,
        "failing_since": 1, "last_success_at": 1, "last_outcome": None, "last_status": None,
    }  # fmt: skip
    for name in NAMES[:3]:
        real = owner_reports.endpoint(webhook, "timeout")
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
