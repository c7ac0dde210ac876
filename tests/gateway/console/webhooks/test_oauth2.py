"""The access token of a receiver: its settings in the form, on the page, in the API, the doctor."""

from __future__ import annotations

import re
from typing import Any

from aiohttp import web

from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database
from outbox.sending.client_credentials import ClientCredentials
from outbox.webhooks.sealed_settings import open_oauth2
from tests.gateway.console.webhooks.test_doctor import delivering, examine
from tests.support.authorization_server import issuer
from tests.support.console import Guest
from tests.support.document import answer_faults
from tests.support.drain import rows

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"
TYPED: dict[str, Any] = {
    "oauth2.tokenUrl": "https://login.example.com/t/oauth2/token", "oauth2.clientId": "crm",
    "oauth2.clientSecret": "hush", "oauth2.scope": " api://x/.default  b ",
    "oauth2.parameters": "resource: hush-2", "oauth2.clientAuthentication": "body",
}  # fmt: skip


async def stored(maria: Guest) -> ClientCredentials | None:
    [row] = await maria.site.db.read(rows, "select id, oauth2 from webhooks")
    assert b"hush" not in bytes(row["oauth2"] or b"")
    return open_oauth2(row["oauth2"], maria.site.app[KEYRING], row["id"])


async def test_the_settings_are_stored_shown_kept_and_removed(maria: Guest) -> None:
    webhook = await maria.webhook(URL, "deal.created", **TYPED)
    assert webhook.status == 200
    expected = ClientCredentials(
        TYPED["oauth2.tokenUrl"], "crm", "hush", "api://x/.default b", "",
        (("resource", "hush-2"),), "body",
    )  # fmt: skip
    assert await stored(maria) == expected
    at = f"{LIST}/{webhook.id}"
    edit = await maria.get(f"{at}/edit")
    assert 'value="https://login.example.com/t/oauth2/token"' in edit.html
    assert "resource: ***" in edit.html
    assert '<option value="body" selected>' in edit.html
    export = await maria.get(f"{LIST}/export")
    assert 'clientSecret = "***"' in export.html
    assert 'parameters.resource = "***"' in export.html
    for page in (webhook, edit, export):
        assert "hush" not in page.html
    same: dict[str, Any] = {"url": URL, "events": "deal.created", **TYPED}
    masked = {"oauth2.clientSecret": "***", "oauth2.parameters": "resource: ***"}
    assert (await maria.submit(at, at=f"{at}/edit", **same | masked)).status == 200
    assert await stored(maria) == expected
    elsewhere = {"oauth2.tokenUrl": "https://evil.example/"}
    for moved in ({"url": "https://other.example.com/"}, elsewhere):
        page = await maria.submit(at, at=f"{at}/edit", **same | masked | moved)
        assert page.status == 400
        assert page.html.count("is on another server now") == 2
    assert (await maria.submit(at, at=f"{at}/edit", url=URL, events="deal.created")).status == 200
    assert await stored(maria) is None
    noted = await maria.site.db.read(rows, "select * from audit order by id")
    assert "hush" not in repr([dict(one) for one in noted])
    assert [one["fields"] for one in noted if one["fields"]] == ["oauth2"]


async def test_a_fault_is_named_beside_its_field(maria: Guest) -> None:
    for name, typed, says in (
        ("tokenUrl", "", "Enter the token URL"),
        ("tokenUrl", "https://a:b@login.example.com/", "user"),
        ("tokenUrl", "ftp://login.example.com/", "http"),
        ("tokenUrl", "https://10.0.0.1/token", "not allowed"),
        ("tokenUrl", "https://login.example.com/#x", "#"),
        ("clientId", "", "Enter the client id"),
        ("clientSecret", "", "Enter the client secret"),
        ("clientSecret", "***", "No value is stored"),
        ("scope", 'a "b"', "printable ASCII"),
        ("audience", "x" * 2049, "at most 2048"),
        ("clientAuthentication", "jwt", "must be basic or body"),
        ("parameters", "grant_type: password", "set by its own field"),
        ("parameters", "no colon", "on its own line"),
        ("parameters", "\n".join(f"p{n}: 1" for n in range(11)), "at most 10"),
    ):
        page = await maria.webhook(URL, "deal.created", **TYPED | {f"oauth2.{name}": typed})
        assert (page.status, says in page.html) == (400, True), (name, typed)
        assert f'id="oauth2.{name}-fault"' in page.html, (name, typed)
        assert 'value="hush"' not in page.html
    page = await maria.webhook(URL, "deal.created", headers="authorization: Bearer x", **TYPED)
    assert "Remove the header Authorization" in page.html
    assert "Enter the client secret again; it was not saved" in page.html
    # The choice alone, which a form always has, asks for no token.
    only = await maria.webhook(URL, "deal.created", **{"oauth2.clientAuthentication": "basic"})
    assert only.status == 200
    assert await stored(maria) is None


def steps_in(html: str) -> list[tuple[str, str]]:
    return re.findall(r'<li class="is-(\w+)">\s*<b>([^<]+)</b>', html)


async def test_the_doctor_shows_each_step_of_the_token_request(db: Database) -> None:
    async with issuer() as (server, box), delivering(db) as (_, maria):
        typed: dict[str, Any] = {
            "oauth2.tokenUrl": f"{server.box.url}/token", "oauth2.clientId": "crm",
            "oauth2.clientSecret": server.client_secret,
        }  # fmt: skip
        webhook = await maria.webhook(box.url, "deal.created", **typed)
        page = await examine(maria, webhook.id)
        names = [name for _, name in steps_in(page.html)]
        assert names[:6] == [
            "Token URL", "Token: DNS lookup", "Token: egress rules",
            "Token: connection", "Token: TLS", "Access token",
        ]  # fmt: skip
        assert names[6:] == ["URL", "DNS lookup", "Egress rules", "Connection", "TLS", "Response"]
        assert "answered 200 with a token, which lasts 3600 s." in page.html
        [sent] = [one.headers["Authorization"] for one in box.got]
        assert sent in server.valid
        assert sent.removeprefix("Bearer ") not in page.html

        async def refuse(request: web.Request) -> web.StreamResponse:
            return web.Response(status=302, headers={"Location": "http://10.0.0.1/"})

        server.answer = refuse
        page = await examine(maria, webhook.id)
        assert steps_in(page.html)[-1] == ("failed", "Access token")
        assert "answered 302, a redirect, which is not followed" in page.html
        assert len(box.got) == 1


async def test_the_api_lists_the_settings_without_secrets(maria: Guest) -> None:
    assert (await maria.webhook(URL, "deal.created", **TYPED)).status == 200
    bearer = {"Authorization": f"Bearer {await maria.site.token()}"}
    async with maria.http.get("/api/webhooks", headers=bearer) as reply:
        listed = await reply.json()
    assert listed["data"][0]["oauth2"] == {
        "tokenUrl": TYPED["oauth2.tokenUrl"], "clientId": "crm", "clientAuthentication": "body",
        "scope": "api://x/.default b", "parameters": ["resource"],
    }  # fmt: skip
    assert answer_faults("GET", "/api/webhooks", 200, listed) == []
