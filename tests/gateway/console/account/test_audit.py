"""The audit log in the console: its page, and an entry for each form that changes something."""

from __future__ import annotations

import io
import re
from html import unescape
from typing import Any, get_args

import pytest
from PIL import Image

from gateway.console.account.audit import PLACES
from gateway.domain.catalogue import RESOURCES
from gateway.records import audit
from gateway.records.audit import Actor, Cause
from gateway.texts import CODES
from gateway.texts import of as texts_of
from outbox.database.transaction import Row, Tx
from tests.gateway.cli.test_replay import run
from tests.gateway.console.account.test_checkpoints import grow
from tests.gateway.console.deliveries.test_steering import waiting
from tests.gateway.console.test_owners import routes
from tests.gateway.console.webhooks.test_file_pages import HIDDEN
from tests.support.console import Guest
from tests.support.drain import rows
from tests.support.orders import placed, product
from tests.support.rest import RestApi
from tests.support.shop import Shop
from tests.support.site import PASSWORD, Site
from tests.support.stocked import stock

PAGE = "/console/audit"
SILENT = {
    "/console/webhooks/preview", "/console/webhooks/{id}/preview", "/console/webhooks/{id}/doctor",
    "/console/webhooks/{id}/guide", "/console/webhooks/{id}/certify", "/console/webhooks/import",
    "/console/account/email",
    "/console/account/two-factor/start", "/console/account/two-factor/stop",
}  # fmt: skip
"""Forms that change nothing: they try something, show what would happen, or lead to a form that
changes it."""
BY_CODE_OR_LINK = {
    "/console/account/two-factor", "/console/account/two-factor/codes",
    "/console/account/two-factor/end", "/console/sign-in/code", "/console/reset-password",
    "/console/confirm-email",
}  # fmt: skip
"""Their entries are looked at in test_two_factor.py and test_account_mails.py."""
OF_APPS = {"/console/connect", "/console/connect/token"}
"""Their test, with an app beside the owner, is test_connect.py."""
FILE = b"""
[[webhook]]
name = "erp"
url = "http://127.0.0.1:9999/erp"
events = ["contact.created"]
"""
OF_RECORDS = {resource.plural for resource in RESOURCES}
"""Their forms use the units of the REST API, whose routes are walked in tests/gateway/rest."""
WRITTEN = (
    {
        path
        for method, path in routes()
        if method == "POST" and OF_RECORDS.isdisjoint(path.split("/")[2:3])
    }
    - SILENT
    - OF_APPS
    - BY_CODE_OR_LINK
)


async def of_owner(tx: Tx) -> list[Row]:
    return await tx.all("select * from audit order by id")


class Walk:
    """The forms of a user, each with what it leaves in the log."""

    def __init__(self, site: Site, maria: Guest) -> None:
        self.site, self.maria = site, maria
        self.done: set[str] = set()
        self._seen: set[str] = set()

    async def new(self) -> list[Row]:
        """Return the entries since the last call."""
        new = [row for row in await self.site.db.read(of_owner) if row["id"] not in self._seen]
        self._seen |= {row["id"] for row in new}
        return new

    async def __call__(
        self, pattern: str, record_id: str = "", *, says: str, at: str = "", **fields: Any
    ) -> str:
        """Send a form, and check that it leaves the entry `action resource`; return its record."""
        await self.new()
        path = pattern.replace("{id}", record_id)
        page = await self.maria.submit(path, at=at or "/console/account", **fields)
        assert page.status == 200, (pattern, re.findall("class=.fault.[^<]*", page.html))
        left = await self.new()
        found = [row for row in left if f"{row['action']} {row['resource']}" == says]
        assert found, (pattern, [(row["action"], row["resource"]) for row in left], page.html)
        # Erasures and imports go on meanwhile, by themselves.
        acts = {(row["actor"], row["actor_id"]) for row in left if row["actor"] != "system"}
        assert acts == {("account", left[0]["owner_id"])}
        assert all(row["request_id"] for row in found)
        self.done.add(pattern)
        return str(found[0]["record_id"])


async def walked(site: Site, maria: Guest) -> set[str]:
    """Use every form that changes something; return their paths."""
    walk = Walk(site, maria)
    await _webhooks(walk)
    await _deliveries(walk)
    await walk.site.db.write(grow)
    await walk("/console/checkpoints", says="created checkpoint")
    await _shop(walk)
    await _account(walk)
    return walk.done


async def _webhooks(walk: Walk) -> None:
    fields = {"url": "http://127.0.0.1:9999/a", "events": "contact.created"}
    one = await walk("/console/webhooks", says="created webhook", **fields)
    where = "/console/webhooks/{id}"
    at = f"/console/webhooks/{one}/edit"
    await walk(where, one, says="updated webhook", at=at, **fields | {"description": "new"})
    await walk(f"{where}/test", one, says="tested webhook", event="contact.created")
    job = {"names": "contact.created", "rate": "1"}
    await walk(f"{where}/snapshot", one, says="created job", **job)
    await walk(f"{where}/pause", one, says="paused webhook")
    await walk(f"{where}/activate", one, says="activated webhook", parked="all")
    await walk(f"{where}/rotate", one, says="created webhook secret")
    await walk(f"{where}/rotate/cancel", one, says="canceled webhook secret")
    await walk.maria.submit(f"/console/webhooks/{one}/rotate", at="/console/account")
    await walk(f"{where}/rotate/activate", one, says="activated webhook secret")
    await walk(f"{where}/delete", one, says="deleted webhook")
    await walk.new()
    imported = "/console/webhooks/import"
    plan = await walk.maria.upload(imported, FILE)
    await walk.maria.post(
        f"{imported}/apply", [(name, unescape(value)) for name, value in HIDDEN.findall(plan.html)]
    )
    assert "created webhook" in {f"{row['action']} {row['resource']}" for row in await walk.new()}
    walk.done.add(f"{imported}/apply")


async def _deliveries(walk: Walk) -> None:
    webhook_id, ids = await waiting(walk.site, walk.maria, 5, "dead")
    where = "/console/deliveries/{id}"
    await walk(f"{where}/now", ids[1], says="hastened delivery")
    await walk(f"{where}/cancel", ids[1], says="canceled delivery")
    await walk(f"{where}/replay", ids[0], says="replayed delivery")
    fields: dict[str, Any] = {"delivery": [ids[2], ids[3]], "act": "cancel"}
    await walk("/console/deliveries/selected", says="canceled delivery", **fields)
    # The head of a line of a record, with one behind it.
    await walk.site.db.write(
        run, "update webhooks set ordered = $1 where id = $2", True, webhook_id
    )
    await walk.site.db.write(
        run,
        "update deliveries set ordered = $1, state = 'ready', finished_at = null where id = $2",
        True,
        ids[3],
    )
    await walk.site.db.write(
        run, "update deliveries set ordered = $1, state = 'held' where id = $2", True, ids[4]
    )
    await walk(f"{where}/skip", ids[3], says="canceled delivery")
    for sql in (
        "update deliveries set state = 'ready', finished_at = null where id = $1",
        "update webhooks set events = '[\"deal.won\"]' where id <> $1",
    ):
        await walk.site.db.write(run, sql, ids[4])
    await walk("/console/webhooks/{id}/unmatched", webhook_id, says="canceled webhook")
    job: dict[str, Any] = {
        "kind": "recover", "ends": "dead", "since": "2020-01-01", "rate": "5", "confirmed": "count",
    }  # fmt: skip
    made = await walk("/console/webhooks/{id}/recover", webhook_id, says="created job", **job)
    await walk("/console/jobs/{id}/cancel", made, says="canceled job")


async def _shop(walk: Walk) -> None:
    maria, site = walk.maria, walk.site
    [user] = await site.db.read(rows, "select id from users")
    api = RestApi(site)
    owner = await api.key_of(user["id"])
    made = await owner.post("/api/stores", {"hostname": "audit.example", "name": "Audit"})
    store = made.body["id"]
    secret = "/console/stores/{id}/payment-secret"
    for path, action in (("", "created"), ("", "created"), ("/cancel", "canceled")):
        await walk(f"{secret}{path}", store, says=f"{action} payment secret")
    await maria.submit(secret.replace("{id}", store), at="/console/account")
    await walk(f"{secret}/activate", store, says="activated payment secret")
    shop = Shop(api, owner, made.body)
    item = await product(owner)
    orders = [(await placed(shop, {item: 1}))["id"] for _ in range(3)]
    await walk("/console/orders/{id}/pay", orders[0], says="updated order", method="pix")
    await walk("/console/orders/{id}/cancel", orders[1], says="updated order", reason="x")
    await site.db.write(run, "update orders set late_payment_at = 1 where id = $1", orders[1])
    await walk("/console/orders/{id}/settle", orders[1], says="updated order")
    chosen = {"order": orders[2], "act": "cancel", "confirmed": "cancel"}
    await walk("/console/orders/selected", says="updated order", at="/console/orders", **chosen)
    review = (await stock(site.db, user["id"], 1, 5))["reviews"]
    await walk("/console/reviews/{id}/reject", review, says="updated review")
    await walk("/console/reviews/{id}/publish", review, says="updated review")


async def _owner(site: Site) -> str:
    [user] = await site.db.read(rows, "select id from users where email = 'maria@example.com'")
    return str(user["id"])


async def _account(walk: Walk) -> None:
    site, maria = walk.site, walk.maria
    fields: dict[str, Any] = {"name": "erp", "scopes": ["read"], "expires": ""}
    key = await walk("/console/keys", says="created key", **fields)
    await walk("/console/keys/{id}/revoke", key, says="revoked key")
    await walk("/console/keys/mcp", says="updated account", deletes="yes")
    file = "/console/import/contacts"
    jobs = []
    for _ in range(2):
        page = await maria.upload(file, b"name\nBruno\n")
        jobs.append(page.id)
    columns = {"act": "start", "column-0": "name"}
    await walk("/console/imports/{id}", jobs[0], says="imported import", **columns)
    await walk("/console/imports/{id}/cancel", jobs[1], says="canceled import")
    # Nothing is imported before the columns are chosen.
    walk.done.add(file)
    contact = (await stock(site.db, await _owner(site), 1, 7))["contacts"]
    await walk("/console/privacy/{id}/erase", contact, says="erased contact")
    typed: dict[str, Any] = {"current": PASSWORD, "new": f"{PASSWORD} 2", "again": f"{PASSWORD} 2"}
    await walk("/console/account/password", says="updated account", **typed)
    typed = {"current": f"{PASSWORD} 2", "new": PASSWORD, "again": PASSWORD}
    await maria.submit("/console/account/password", **typed)
    saved = {"name": "Maria S", "timezone": "America/Sao_Paulo"}
    await walk("/console/account", says="updated account", **saved)
    new = {"current": PASSWORD, "new": "a few random words", "again": "a few random words"}
    await walk("/console/account/password", says="updated account", **new)
    new = {"current": new["new"], "new": PASSWORD, "again": PASSWORD}
    await walk("/console/account/password", says="updated account", **new)
    pipeline = "/console/settings/pipeline"
    [version] = re.findall('name="version" value="([^"]*)"', (await maria.get(pipeline)).html)
    await walk(pipeline, says="updated pipeline", stages="new\nold", version=version)
    company, said = "/console/settings/company", "updated company_settings"
    [version] = re.findall('name="version" value="([^"]*)"', (await maria.get(company)).html)
    await walk(company, says=said, tradeName="Café", version=version)
    Image.new("RGB", (9, 9)).save(picture := io.BytesIO(), "PNG")
    token = (await maria.get(company)).csrf
    await maria.upload(f"{company}/logo", picture.getvalue(), token=token)
    walk.done.add(f"{company}/logo")
    await walk(f"{company}/logo/remove", says=said)
    await maria.submit("/console/sign-out", at="/console/account")
    await maria.sign_in()
    [session] = await site.db.read(rows, "select id from sessions")
    await walk("/console/account/sessions/{id}/end", session["id"], says="signed_out session")
    await maria.sign_in()
    await walk("/console/sign-out", says="signed_out session")
    await maria.sign_in()
    await walk("/console/account/sign-out-everywhere", says="signed_out session")


async def test_every_form_that_changes_something_leaves_an_entry(
    console: Site, maria: Guest
) -> None:
    assert WRITTEN - await walked(console, maria) == set()


async def test_the_page_shows_who_changed_what(console: Site, maria: Guest, rui: Guest) -> None:
    page = await maria.get(PAGE)
    assert page.status == 200
    assert "Signed in: session" in page.html
    webhook = await maria.webhook("http://127.0.0.1:9999/hook", "contact.created")
    page = await maria.get(f"{PAGE}?record={webhook.id}")
    assert page.html.count('data-testid="entry"') == 1
    assert "Created: webhook" in page.html
    assert f'href="/console/webhooks/{webhook.id}"' in page.html
    assert "Maria" in page.html
    assert webhook.id not in (await rui.get(f"{PAGE}?record={webhook.id}")).html.replace(
        f'value="{webhook.id}"', ""
    )
    # The page of a deleted webhook is gone, so nothing leads there.
    await maria.submit(f"/console/webhooks/{webhook.id}/delete")
    page = await maria.get(f"{PAGE}?record={webhook.id}&action=deleted")
    assert "Deleted: webhook" in page.html
    assert f'href="/console/webhooks/{webhook.id}"' not in page.html


async def test_filters_and_pages(console: Site, maria: Guest) -> None:
    [user] = await console.db.read(rows, "select id from users")
    who = Actor(user["id"], "system", cause="expiry")

    async def fill(tx: Tx) -> None:
        for _ in range(60):
            audit.record(tx, who, "updated", "quote", "f" * 24, ["status", "<b>x"])

    await console.db.write(fill)
    page = await maria.get(f"{PAGE}?actor=system&action=updated")
    assert page.html.count('data-testid="entry"') == 50
    assert "System: time expired" in page.html
    assert "<b>x" not in page.html
    onward = re.search('id="next-page" rel="next" href="([^"]*)"', page.html)
    assert onward
    page = await maria.get(onward[1].replace("&amp;", "&"))
    assert page.html.count('data-testid="entry"') == 10
    assert 'id="next-page"' not in page.html
    for query in ("record=x", f"record={'0' * 24}", "actor=customer", "action=erased"):
        page = await maria.get(f"{PAGE}?{query}")
        assert (page.status, "No entry matches" in page.html) == (200, True), query
    for query in ("actor=x", "action=x", "after=x", "after=%ff"):
        assert 'data-testid="entry"' in (await maria.get(f"{PAGE}?{query}")).html, query


@pytest.mark.parametrize("code", CODES)
def test_every_word_of_the_log_has_a_text(code: str) -> None:
    texts = texts_of(code)
    words = [f"audit.kind.{kind}" for kind in audit.KINDS]
    words += [f"audit.action.{action}" for action in audit.ACTIONS]
    words += [f"audit.cause.{cause}" for cause in get_args(Cause)]
    known = [*PLACES, "token", "pipeline"]
    words += [f"audit.resource.{word}" for word in known]
    assert [word for word in words if word not in texts] == []
    assert {resource.noun for resource in RESOURCES} <= {*known}


async def test_a_page_of_a_record_shows_its_last_changes(
    console: Site, maria: Guest, rui: Guest
) -> None:
    owner = await RestApi(console).key_of(await _owner(console))
    made = (await owner.post("/api/contacts", {"name": "Bruno"})).body["id"]
    await owner.put(f"/api/contacts/{made}", {"phone": "11 98888-7777"})
    part = f"{PAGE}/changes?record={made}"
    assert f'hx-get="{part}"' in (await maria.get(f"/console/contacts/{made}")).html
    page = await maria.get(part)
    assert page.html.count("<li>") == 2
    assert page.html.index("Changed") < page.html.index("Created")
    assert f'href="{PAGE}?record={made}"' in page.html
    assert "<html" not in page.html
    for guest, query in ((rui, made), (maria, "x"), (maria, ""), (maria, "%00")):
        page = await guest.get(f"{PAGE}/changes?record={query}")
        assert (page.status, "No changes within the log" in page.html) == (200, True)
