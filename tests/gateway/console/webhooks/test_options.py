"""Options of a webhook in its form: filter, retry schedule and order; their preview."""

import json
from typing import Any

from outbox.database.transaction import Row
from tests.gateway.cli.test_replay import run
from tests.support.console import Guest, Seen
from tests.support.drain import rows

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"
FIELDS = "id, title, value, stage, status, createdAt"


def text_of(page: Seen) -> str:
    return page.html.replace("&#39;", "'").replace("&#34;", '"').replace("&amp;", "&")


async def stored(maria: Guest) -> Row:
    [row] = await maria.site.db.read(rows, "select * from webhooks")
    return row


async def test_the_options_are_stored_shown_and_edited(maria: Guest) -> None:
    webhook = await maria.webhook(
        URL, "deal.created", "deal.updated", conditions="status=won\r\nvalue = 12500.50\n",
        schedule="5s, 5m,2h", ordered="1", ed25519="1",
    )  # fmt: skip
    assert webhook.status == 200
    row = await stored(maria)
    assert json.loads(row["conditions"]) == [["status", "won"], ["value", "12500.5"]]
    assert json.loads(row["schedule"]) == [5, 300, 7200]
    assert row["ordered"]
    assert row["ed25519"]
    for said in ("status = won", "value = 12500.5", "5 s, 5 min, 2 h", "one after the other",
                 "Requests have Ed25519 signatures"):  # fmt: skip
        assert said in webhook.html
    never = "Never sent, because none of them can pass the filter: deal.created, deal.updated."
    assert never in webhook.html
    edit = await maria.get(f"{LIST}/{webhook.id}/edit")
    assert "status = won\nvalue = 12500.5\n</textarea>" in edit.html
    assert 'value="5 s, 5 min, 2 h"' in edit.html
    for name in ("ordered", "ed25519"):
        assert f'name="{name}" value="1" aria-describedby="{name}-hint" checked' in edit.html
    done = await maria.submit(
        f"{LIST}/{webhook.id}", at=f"{LIST}/{webhook.id}/edit", url=URL, events="deal.created",
        schedule="never",
    )  # fmt: skip
    assert done.status == 200
    row = await stored(maria)
    assert (row["conditions"], row["schedule"], bool(row["ordered"])) == (None, "[]", False)
    assert not row["ed25519"]


async def test_the_page_of_a_numbered_webhook_tells_its_last_number(maria: Guest) -> None:
    webhook = await maria.webhook(URL, "deal.created", sequenced="1")
    assert (await stored(maria))["sequenced"]
    for last in (0, 17):
        await maria.site.db.write(run, "update sequences set last = $1", last)
        page = await maria.get(f"{LIST}/{webhook.id}")
        assert f"the last number is {last}" in page.html
    edit = await maria.get(f"{LIST}/{webhook.id}/edit")
    assert 'name="sequenced" value="1" aria-describedby="sequenced-hint" checked' in edit.html
    await maria.submit(
        f"{LIST}/{webhook.id}", at=f"{LIST}/{webhook.id}/edit", url=URL, events="deal.created"
    )
    assert not (await stored(maria))["sequenced"]
    assert "last number" not in (await maria.get(f"{LIST}/{webhook.id}")).html


async def test_a_fault_is_named_beside_its_field(maria: Guest) -> None:
    for name, typed, says in (
        ("conditions", "status", "as field = value, as field is present or as field changed"),
        ("conditions", "colour = red", f"No selected event has the field colour. {FIELDS}"),
        ("conditions", "email is present", "No selected event has the field email"),
        ("conditions", "status = won\nstatus = lost", "has two values"),
        ("conditions", "status =", "Put the value of status after ="),
        ("conditions", "status = wun", "open, won, lost"),
        ("conditions", "value = R$ 3", "must be a number"),
        ("conditions", 'title = "a', "as field = value"),
        ("conditions", "title = " + "x" * 201, "at most 200 characters"),
        ("conditions", 'title = "\\ud800"', "without control characters"),
        ("conditions", "\n".join(f"x{n} = 1" for n in range(11)), "No selected event"),
        ("schedule", "soon", "separated by commas"),
        ("schedule", "0", "from 1 second to 30 days"),
        ("schedule", "31d", "from 1 second to 30 days"),
        ("schedule", "20d, 20d", "together must last at most 30 days"),
        ("schedule", ",".join(["1"] * 21), "at most 20 retries"),
    ):
        fields: dict[str, Any] = {name: typed}
        page = await maria.webhook(URL, "deal.created", **fields)
        assert page.status == 400
        assert all(part in text_of(page) for part in says.split(". ")), typed
        assert f'id="{name}-fault"' in page.html
        preview = await maria.submit(
            f"{LIST}/preview", at=f"{LIST}/new", events="deal.created", **fields
        )
        assert (preview.status, says.split(". ")[0] in text_of(preview)) == (200, True), typed
    assert not await maria.site.db.read(rows, "select id from webhooks")


async def test_the_preview_says_which_sample_passes_and_saves_nothing(maria: Guest) -> None:
    page = await maria.submit(
        f"{LIST}/preview", at=f"{LIST}/new", events=["deal.created", "deal.updated"],
        conditions="status = won", description="kept",
    )  # fmt: skip
    assert page.status == 200
    assert 'value="kept"' in page.html
    assert "deal.created can never match: status = won." in page.html
    assert "This sample does not meet: status = won." in page.html
    assert "<code>status = open</code>" in page.html
    passing = await maria.submit(
        f"{LIST}/preview", at=f"{LIST}/new", events="deal.created", conditions="status = open"
    )
    assert "Passes" in passing.html
    assert '"status": "open"' in text_of(passing)
    assert not await maria.site.db.read(rows, "select id from webhooks")


async def test_the_preview_shows_when_the_retries_of_the_schedule_follow(maria: Guest) -> None:
    webhook = await maria.webhook(URL, "deal.created")
    at = f"{LIST}/{webhook.id}/edit"
    page = await maria.submit(
        f"{LIST}/{webhook.id}/preview", at=at, events="deal.created", schedule="90 s, 1 h"
    )
    assert "Attempt 3" in page.html
    assert "Attempt 4" not in page.html
    assert "1.5 min" in page.html
    usual = await maria.submit(f"{LIST}/{webhook.id}/preview", at=at, events="deal.created")
    assert "Attempt 10" in usual.html
    never = await maria.submit(f"{LIST}/{webhook.id}/preview", at=at, schedule="never")
    assert "Attempt 2" not in never.html
    assert "Select at least one event" in never.html


async def test_a_filter_without_events_has_no_fault_of_its_own(maria: Guest) -> None:
    page = await maria.submit(LIST, at=f"{LIST}/new", url=URL, conditions="stat = x")
    assert page.status == 400
    assert page.html.count('class="fault"') == 1
    assert "Choose at least one event." in page.html
