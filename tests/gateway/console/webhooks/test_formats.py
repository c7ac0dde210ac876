"""The format of a webhook and the permission of its receiver: form, page, delivery, doctor."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from outbox.database.transaction import Database
from tests.gateway.console.webhooks.test_doctor import delivering, examine
from tests.support.console import Guest
from tests.support.drain import inbox, rows
from tests.support.waiting import until

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"


async def test_the_settings_are_stored_shown_and_removed(maria: Guest) -> None:
    page = await maria.webhook(
        URL, "deal.created", format="cloudevents-binary", handshake="1", ordered="1"
    )
    assert "CloudEvents 1.0, binary" in page.html
    assert "Asked before the next delivery" in page.html
    [row] = await maria.site.db.read(rows, "select format, handshake, sequenced from webhooks")
    assert (row["format"], bool(row["handshake"])) == ("cloudevents-binary", True)
    assert row["sequenced"], "its numbers are the sequence"
    at = f"{LIST}/{page.id}"
    edit = await maria.get(f"{at}/edit")
    assert '<option value="cloudevents-binary" selected>' in edit.html
    for typed in ("contract", ""):
        again = await maria.submit(
            at, at=f"{at}/edit", url=URL, events="deal.created", format=typed
        )
        assert again.status == 200
        [row] = await maria.site.db.read(rows, "select format, handshake from webhooks")
        assert (row["format"], bool(row["handshake"])) == (None, False)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"format": "xml"}, "the formats are: contract, cloudevents, cloudevents-binary"),
        # Receivers take any ce- header for the binary mode.
        (
            {"format": "cloudevents", "headers": "CE-Tenant: 7"},
            "CE-Tenant is set by the format; remove the header.",
        ),
    ],
)
async def test_faults_are_named(maria: Guest, typed: dict[str, Any], says: str) -> None:
    page = await maria.submit(LIST, at=f"{LIST}/new", url=URL, events="deal.created", **typed)
    assert (page.status, says in page.html) == (400, True)


async def test_headers_with_the_prefix_stay_with_the_contract(maria: Guest) -> None:
    page = await maria.webhook(URL, "deal.created", headers="ce-tenant: 7")
    assert page.status == 200


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_the_page_tells_what_the_receiver_allows_and_what_it_got(db: Database) -> None:
    allowed: dict[str, str] = {}

    async def answer(request: web.Request) -> web.Response:
        return web.Response(headers=allowed)

    async with inbox(answer=answer) as box, delivering(db) as (site, maria):
        page = await maria.webhook(box.url, "contact.created", format="cloudevents", handshake="1")
        at = f"{LIST}/{page.id}"
        refused = await examine(maria, page.id)
        assert "has no WebHook-Allowed-Origin" in refused.html
        allowed |= {"WebHook-Allowed-Origin": "*", "WebHook-Allowed-Rate": "90"}
        assert "The receiver allows 1.5 requests" in (await examine(maria, page.id)).html
        await maria.submit(f"{at}/test", at=at, event="contact.created")
        query = "select delivery_id from attempts where outcome = 'success'"
        [row] = await until(lambda: site.db.read(rows, query))
        assert "At most 1.5" in (await maria.get(at)).html
        delivery = await maria.get(f"/console/deliveries/{row['delivery_id']}")
        assert "This webhook gets CloudEvents" in delivery.html
        sent = json.loads(box.got[-1].body)
        assert (sent["type"], sent["test"]) == ("carteiro.contact.created", "1")
        assert sent["id"] in (delivery.test_id("thin-body") or "")
