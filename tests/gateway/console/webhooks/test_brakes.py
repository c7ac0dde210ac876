"""The limits, the client certificate, the proxy and the body of a webhook in its form."""

from __future__ import annotations

from typing import Any

import pytest
import trustme

from gateway import texts
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Row
from outbox.durations import DAY, SECOND
from outbox.webhooks.sealed_settings import open_certificate
from tests.gateway.cli.test_replay import run
from tests.support.console import Guest
from tests.support.drain import rows

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"
EN = texts.of("en")


async def stored(maria: Guest) -> Row:
    [row] = await maria.site.db.read(rows, "select * from webhooks")
    return row


@pytest.fixture(scope="module")
def pem() -> str:
    own = trustme.CA().issue_cert("carteiro@client.example")
    return (own.cert_chain_pems[0].bytes() + own.private_key_pem.bytes()).decode()


async def test_the_settings_are_stored_shown_kept_and_removed(maria: Guest, pem: str) -> None:
    webhook = await maria.webhook(
        URL, "deal.created", concurrency="3", rate="0,5", certificate=pem, thin="1"
    )
    assert webhook.status == 200
    assert "Valid until in " not in webhook.html
    row = await stored(maria)
    assert (row["concurrency"], row["rate"], row["proxy"], bool(row["thin"])) == (
        3,
        500,
        None,
        True,
    )
    assert b"PRIVATE" not in bytes(row["certificate"])
    for said in ("At most 3", "At most 0.5", "Valid until", "address instead of its data"):
        assert said in webhook.html
    edit = await maria.get(f"{LIST}/{webhook.id}/edit")
    assert 'value="0.5"' in edit.html
    assert "***\n</textarea>" in edit.html or "***</textarea>" in edit.html
    assert "PRIVATE KEY" not in edit.html + webhook.html
    assert '<select id="proxy"' not in edit.html, "the operator allows none"
    at = f"{LIST}/{webhook.id}"
    same: dict[str, Any] = {"url": URL, "events": "deal.created", "concurrency": "3", "rate": "0.5"}
    kept = await maria.submit(at, at=f"{at}/edit", certificate="***", thin="1", **same)
    assert kept.status == 200
    row = await stored(maria)
    own = open_certificate(
        bytes(row["certificate"]), row["certificate_until"], maria.site.app[KEYRING], row["id"]
    )
    assert own is not None
    assert pem.split("-----")[2] in own.pem.replace("\r", "")
    gone = await maria.submit(at, at=f"{at}/edit", url=URL, events="deal.created")
    assert gone.status == 200
    row = await stored(maria)
    names = ("concurrency", "rate", "certificate", "certificate_until", "proxy")
    assert [row[name] for name in names] == [None] * 5
    assert not row["thin"]
    noted = await maria.site.db.read(
        rows, "select fields from audit where action = 'updated' order by id"
    )
    changed = [one["fields"] for one in noted if one["fields"]]
    assert changed == ["concurrency,rate,certificate,thin"]


async def test_a_fault_is_named_beside_its_field(maria: Guest, pem: str) -> None:
    for name, typed, says in (
        ("concurrency", "0", "from 1 to 1000"),
        ("concurrency", "two", "from 1 to 1000"),
        ("concurrency", "00000000010000", "from 1 to 1000"),
        ("rate", "0", "such as 5 or 0.5"),
        ("rate", "1001", "such as 5 or 0.5"),
        ("rate", "1e3", "such as 5 or 0.5"),
        ("certificate", "hello", "Paste the certificate in PEM"),
        ("certificate", "***", "cannot be decrypted"),
        ("proxy", "nowhere", "There is no proxy"),
    ):
        page = await maria.webhook(URL, "deal.created", **{name: typed})
        assert (page.status, says in page.html) == (400, True), (name, typed)
        assert f'id="{name}-fault"' in page.html
    assert not await maria.site.db.read(rows, "select id from webhooks")
    # A page never repeats a pasted key.
    page = await maria.webhook(URL, "deal.created", certificate=pem, rate="0")
    assert page.status == 400
    assert "PRIVATE KEY" not in page.html
    assert "Paste the certificate and its key again" in page.html
    assert pem.split("-----")[2].strip()[:40] not in page.html


async def test_the_page_of_a_webhook_warns_before_its_certificate_ends(
    maria: Guest, pem: str
) -> None:
    webhook = await maria.webhook(URL, "deal.created", certificate=pem)
    expired, soon = "brakes.certificate_expired", "brakes.certificate_soon"
    for rest, says in ((-SECOND, expired), (29 * DAY, soon), (31 * DAY, "")):
        until = maria.site.db.clock.wall() + rest
        await maria.site.db.write(run, "update webhooks set certificate_until = $1", until)
        page = await maria.get(f"{LIST}/{webhook.id}")
        for notice in (expired, soon):
            assert (EN(notice) in page.html) == (notice == says)


async def test_a_certificate_stays_beside_headers_that_cannot_be_decrypted(
    maria: Guest, pem: str
) -> None:
    webhook = await maria.webhook(URL, "deal.created", certificate=pem, headers="X-Key: 1")
    at = f"{LIST}/{webhook.id}"
    # A certificate that expired after it was pasted is no new one, so it is not judged again.
    await maria.site.db.write(
        run, "update webhooks set headers = substr(headers, 1, 20), certificate_until = 1"
    )
    kept = await maria.submit(
        at, at=f"{at}/edit", url=URL, events="deal.created", certificate="***", headers=""
    )
    assert kept.status == 200
    assert (await stored(maria))["certificate"] is not None
    [noted] = await maria.site.db.read(rows, "select fields from audit where action = 'updated'")
    assert noted["fields"] == "headers"


@pytest.mark.parametrize("url", ["https://evil.example.com/crm", "https://hooks.example.com:8443/"])
async def test_another_server_gets_no_stored_header_or_certificate(
    maria: Guest, pem: str, url: str
) -> None:
    webhook = await maria.webhook(URL, "deal.created", certificate=pem, headers="X-Key: s3cret")
    at = f"{LIST}/{webhook.id}"
    before = await stored(maria)
    same: dict[str, Any] = {"url": url, "events": "deal.created"}
    moved = await maria.submit(at, at=f"{at}/edit", headers="X-Key: ***", certificate="***", **same)
    assert moved.status == 400
    assert "enter the value of X-Key again" in moved.html
    assert "paste the certificate and its key again, or empty the field" in moved.html
    assert await stored(maria) == before
    # What is entered again is for the new server, and what is left out is gone.
    said = await maria.submit(at, at=f"{at}/edit", headers="X-Key: s3cret", certificate="", **same)
    assert said.status == 200
    row = await stored(maria)
    assert (row["url"], row["certificate"]) == (url, None)
    # Another path of the same server keeps them.
    path = await maria.submit(
        at, at=f"{at}/edit", headers="X-Key: ***", url=f"{url}/new", events="deal.created"
    )
    assert path.status == 200
