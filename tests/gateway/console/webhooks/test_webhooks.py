"""The pages of webhooks: forms and their faults, permissions, and results."""

import json
import re
from typing import Any

from gateway.server.app_keys import KEYRING
from gateway.server.config import Config, Egress, Limits
from gateway.server.telemetry.metrics import METRICS
from outbox import webhooks as endpoints
from outbox.database.transaction import Database, Tx
from outbox.webhooks import sealed_settings
from tests.support.console import Guest, guest
from tests.support.drain import make, rows
from tests.support.lines import fanned
from tests.support.site import serving

URL = "https://hooks.example.com/crm"
LIST = "/console/webhooks"


async def test_a_new_webhook_shows_its_secret_once(maria: Guest) -> None:
    page = await maria.webhook(
        URL, "contact.created", "invoice.paid", description="ERP <b>sync</b>"
    )
    assert page.path == f"{LIST}/{page.id}?done=created"
    secret = page.test_id("webhook-secret") or ""
    assert secret.startswith("whsec_")
    assert "ERP &lt;b&gt;sync&lt;/b&gt;" in page.html
    again = await maria.get(f"{LIST}/{page.id}")
    assert again.test_id("webhook-secret") is None
    assert secret not in again.html
    [row] = await maria.site.db.read(rows, "select * from webhooks")
    assert secret.encode() not in bytes(row["secret"])
    assert json.loads(row["events"]) == ["contact.created", "invoice.paid"]
    [session] = await maria.site.db.read(rows, "select * from sessions")
    assert session["reveal"] is None
    # It waits for its own page.
    answer = await maria.submit(
        LIST, at=f"{LIST}/new", url=URL, events="deal.created", follow=False
    )
    second = answer.headers["Location"].partition("?")[0]
    assert (await maria.get(f"{LIST}/{page.id}")).test_id("webhook-secret") is None
    assert (await maria.get(second, HX_Request="true")).test_id("webhook-secret") is None
    assert (await maria.get(second)).test_id("webhook-secret")


async def test_what_is_wrong_is_named_beside_its_field(maria: Guest) -> None:
    one = "contact.created"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "", "events": one}, "Enter the URL"),
        ({"url": "ftp://x.example", "events": one}, "with http:// or https://"),
        ({"url": "https://u:p@x.example", "events": one}, "Authorization"),
        ({"url": "https://x.example:6379/", "events": one}, "Port 6379"),
        ({"url": "https://x.example:6379/", "events": one}, "[egress] allow in config"),
        ({"url": "https://" + "x" * 3000, "events": one}, "2048"),
        ({"url": "https://10.0.0.1/", "events": one},
         "[egress] allow in config.local.toml and restart"),
        ({"url": "https://169.254.169.254/", "events": one}, "are not allowed"),
        ({"url": URL}, "at least one event"),
        ({"url": URL, "events": [one, "no.such"]}, "no event"),
        ({"url": URL, "events": one, "timeout": "31"}, "from 1 to 30"),
        ({"url": URL, "events": one, "timeout": "soon"}, "from 1 to 30"),
        ({"url": URL, "events": one, "description": "x" * 201}, "at most 200"),
        ({"url": URL, "events": one, "description": "a\x00b"}, "control char"),
    ]  # fmt: skip
    for fields, says in wrong:
        page = await maria.submit(LIST, at=f"{LIST}/new", **fields)
        assert (page.status, says in page.html.replace("&#39;", "'")) == (400, True), fields
        assert "aria-invalid" in page.html or "events-fault" in page.html
    assert not await maria.site.db.read(rows, "select id from webhooks")


async def test_an_account_has_a_maximum_of_webhooks(db: Database) -> None:
    """And plain http needs an installation that allows it."""
    config = Config(limits=Limits(webhooks_per_owner=2), egress=Egress())
    async with serving(db, config) as site, guest(site) as somebody:
        await site.user()
        await somebody.sign_in()
        page = await somebody.webhook("http://hooks.example.com/")
        assert (page.status, "use https, or allow it with [egress]" in page.html) == (400, True)
        assert [(await somebody.webhook(URL)).status for _ in range(3)] == [200, 200, 409]
        assert len(await db.read(rows, "select id from webhooks")) == 2
        page = await somebody.webhook(URL)
        assert "the limit of this installation" in page.html


async def test_a_change_says_what_no_longer_matches(maria: Guest) -> None:
    db = maria.site.db
    twin = await maria.webhook(URL.replace("https://", "HTTPS://"), "deal.created")
    webhook = await maria.webhook(URL, "contact.created", "deal.created")
    path = f"{LIST}/{webhook.id}"
    assert "deal.created" in (note := webhook.html.partition('data-testid="twin"')[2][:600])
    assert f"{LIST}/{twin.id}" in note
    assert f"{LIST}/{webhook.id}" in (await maria.get(f"{LIST}/{twin.id}")).html
    await maria.submit(f"{path}/pause", at=path)
    owner = await owner_of(maria, webhook.id)
    for name in ("contact.created", "contact.created", "deal.created"):
        await db.write(make, "r", name, owner)
    await fanned(db)
    fields: dict[str, Any] = {"url": URL, "events": "deal.created", "at": f"{path}/edit"}
    preview = await maria.submit(f"{path}/preview", **fields)
    assert "2 waiting deliveries do not match" in preview.html
    page = await maria.submit(path, **fields)
    assert page.path == f"{path}?done=saved_unmatched&count=2"
    assert "2 waiting deliveries no longer match; they are sent all the same" in page.html
    choice = await maria.get(page.link("See what no longer matches, or cancel it"))
    assert "2 waiting deliveries do not match" in choice.html
    page = await maria.submit(f"{path}/unmatched")
    assert "2 waiting deliveries were canceled" in page.html
    # The choice in the form itself; a filter counts like events.
    page = await maria.submit(path, **fields, conditions="value = 1", unmatched="cancel")
    assert "1 waiting delivery that no longer matches was canceled" in page.html
    page = await maria.submit(path, **fields, unmatched="perhaps")
    assert page.status == 400
    page = await maria.submit(path, **fields)
    assert page.path == f"{path}?done=saved"
    assert (await maria.get(f"{LIST}/{'0' * 24}/unmatched")).status == 404


async def owner_of(maria: Guest, webhook_id: str) -> str:
    [row] = await maria.site.db.read(
        rows, "select owner_id from webhooks where id = $1", webhook_id
    )
    return str(row["owner_id"])


async def test_an_edit_fails_after_another_edit(maria: Guest) -> None:
    webhook = await maria.webhook(URL)
    path = f"{LIST}/{webhook.id}"
    edit = await maria.get(f"{path}/edit")
    fields = [("csrf_token", edit.csrf), ("url", "https://new.example.com/"),
              ("events", "deal.created"), ("timeout", "7"), ("version", "1")]  # fmt: skip
    page = await maria.post(path, fields)
    assert page.path == f"{path}?done=saved"
    assert "https://new.example.com/" in page.html
    assert "7 s" in page.html
    for version in (
        "1", "0", "-1", "2.0", "two", " ", "\0", "٢", "²", "9" * 19, "9" * 25, "9" * 5_000,
        "9223372036854775807", "9223372036854775808",
    ):  # fmt: skip
        late = await maria.post(path, [*fields[:-1], ("version", version)])
        assert late.status == 409, version
    # A program that sends no version overwrites.
    assert (await maria.post(path, fields[:-1])).path == f"{path}?done=saved"
    bad = await maria.post(path, [("csrf_token", edit.csrf), ("url", "nonsense")])
    assert bad.status == 400
    assert "Edit webhook" in bad.html


async def test_custom_headers_are_stored_but_not_shown_again(maria: Guest) -> None:
    created = await maria.webhook(URL, headers="Authorization: Bearer hush\n\n X-Team : blue ")
    path = f"{LIST}/{created.id}"
    edit = await maria.get(f"{path}/edit")
    for page in (created, edit, await maria.get(path)):
        assert "hush" not in page.html
        assert "Authorization" in page.html

    async def stored() -> list[tuple[str, str]]:
        webhook = await maria.site.db.read(endpoints.one, created.id)
        assert webhook is not None
        return sealed_settings.open_headers(webhook.headers, maria.site.app[KEYRING], created.id)

    assert await stored() == [("Authorization", "Bearer hush"), ("X-Team", "blue")]
    fields: dict[str, Any] = {"url": URL, "events": "contact.created", "at": f"{path}/edit"}
    await maria.submit(path, headers="authorization: ***\nX-New: 1", **fields)
    assert await stored() == [("authorization", "Bearer hush"), ("X-New", "1")]
    for wrong, says in (
        ("no colon", "Name: value"), ("Host: x", "set automatically"), ("X-A: 1\nx-a: 2", "twice"),
        ("X-Webhook-Id: 1", "set automatically"), ("X: é", "printable ASCII"),
        ("Bad name: x", "letters"),
        ("\n".join(f"X-{n}: 1" for n in range(11)), "at most 10"),
    ):  # fmt: skip
        page = await maria.submit(path, headers=wrong, **fields)
        assert page.status == 400
        assert says in page.html, wrong
    await maria.submit(path, headers="", **fields)
    assert await stored() == []


async def test_pause_and_activate(maria: Guest) -> None:
    webhook = await maria.webhook(URL)
    path = f"{LIST}/{webhook.id}"
    page = await maria.submit(f"{path}/pause", at=path)
    assert "Paused" in page.html
    [lane] = await maria.site.db.read(rows, "select * from lanes")
    assert not lane["active"]
    again = await maria.submit(f"{path}/pause", at=path)
    assert again.path == path
    refused = await maria.submit(f"{path}/activate", at=path, parked="some")
    assert refused.status == 400
    page = await maria.submit(f"{path}/activate", at=f"{path}/activate")
    assert page.path == f"{path}?done=activated"
    [lane] = await maria.site.db.read(rows, "select * from lanes")
    assert lane["active"]
    assert await maria.submit(f"{path}/activate", at=path, parked="all")


async def test_what_is_parked_is_sent_unless_the_owner_chooses_otherwise(maria: Guest) -> None:
    webhook = await maria.webhook(URL)
    path = f"{LIST}/{webhook.id}"
    await maria.submit(f"{path}/pause", at=path)
    # Two open pages: what is parked meanwhile is not dropped by a page that knew of none.
    empty = await maria.get(f"{path}/activate")
    assert 'name="parked" value="all"' in empty.html
    await maria.site.db.write(add_parked, webhook.id, range(3))
    page = await maria.get(f"{path}/activate")
    assert re.findall('value="(all|newest|none)" checked', page.html) == ["all"]
    assert (page.test_id("count-all"), page.test_id("count-newest")) == (
        "(3 deliveries)", "(1 delivery)",
    )  # fmt: skip
    chosen = re.findall('type="radio" name="parked" value="([a-z]+)" checked', page.html)
    await maria.submit(f"{path}/activate", parked=chosen)
    states = await maria.site.db.read(rows, "select state from deliveries")
    assert {row["state"] for row in states} == {"ready"}


async def test_what_an_activation_and_a_removal_cancel_is_counted(maria: Guest) -> None:
    db, metrics = maria.site.db, maria.site.app[METRICS]
    webhook = await maria.webhook(URL)
    path = f"{LIST}/{webhook.id}"
    for count, action in ((2, "activate"), (5, "delete")):
        await maria.submit(f"{path}/pause", at=path)
        await db.write(add_parked, webhook.id, range(count - 2, count))
        done = await maria.submit(f"{path}/{action}")
        deliveries = await db.read(rows, "select state from deliveries")
        assert {row["state"] for row in deliveries} == {"cancelled"}
        if action == "delete":
            # The page after it says the true number, and its log stays where it was.
            assert "2 waiting deliveries were canceled" in done.html
            link = f"{path}/deliveries"
            assert link in done.html
            assert "2 deliveries canceled" in done.html
            log = await maria.get(path)
            assert log.path == link
            assert log.html.count('id="row-') == 4
            assert "This webhook was deleted" in log.html
            everything = await maria.get(f"/console/deliveries?webhook={webhook.id}")
            assert everything.html.count('id="row-') == 4
        name, labels = "webhook_deliveries_finished_total", {"result": "cancelled"}
        assert metrics.registry.get_sample_value(name, labels) == len(deliveries)


async def add_parked(tx: Tx, webhook_id: str, numbers: range) -> None:
    for number in numbers:
        await tx.run(
            "insert into deliveries (id, owner_id, event_id, webhook_id, origin, state, retry,"
            " next_at, tries, attempts, record_id, seq, created_at) values ($1, 'o', $1, $2,"
            " 'event', 'ready', false, 0, 0, 0, 'r', $3, 1)",
            f"{number + 1:024x}", webhook_id, number,
        )  # fmt: skip


async def test_a_test_event_is_one_of_the_catalogue_for_an_active_webhook(maria: Guest) -> None:
    webhook = await maria.webhook(URL)
    path = f"{LIST}/{webhook.id}"
    assert (await maria.submit(f"{path}/test", at=path, event="no.such")).status == 400
    await maria.submit(f"{path}/pause", at=path)
    assert (await maria.submit(f"{path}/test", at=path, event="deal.created")).status == 409
    assert not await maria.site.db.read(rows, "select id from events")


async def test_htmx_is_redirected_after_the_end_of_the_session(nobody: Guest) -> None:
    answer = await nobody.get(LIST, HX_Request="true")
    assert answer.status == 401
    assert answer.headers["HX-Redirect"] == "/console/sign-in?next=/console"
