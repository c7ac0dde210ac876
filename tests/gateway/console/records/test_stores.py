"""Stores in the console: their form is made from the declaration, and nothing of it is lost."""

import re
from typing import Any

from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Record, check
from gateway.rest.body import members_of
from outbox.database.transaction import Row, Tx
from tests.gateway.console.records.test_every_resource import fields_of
from tests.support.console import Guest, Seen

LIST = "/console/stores"
NEW = f"{LIST}/new"
RULE = {
    "type": "express", "name": "Express", "price": "25,50", "deadline": "2",
    "cepFrom": "01000-000", "cepTo": "05999999",
}  # fmt: skip


def row(field: str, place: int, **values: str) -> dict[str, Any]:
    """Return the inputs of a row."""
    return {f"{field}[{place}].{name}": value for name, value in values.items()}


async def owner_of(guest: Guest, email: str = "maria@example.com") -> Actor:
    async def unit(tx: Tx) -> Row:
        row = await tx.one("select id from users where email = $1", email)
        assert row is not None
        return row

    return Actor((await guest.site.db.read(unit))["id"], "system")


async def made(guest: Guest, **values: Any) -> Record:
    """Create a store of Maria."""
    body = {"hostname": "shop.example.com", "name": "Coffee Shop"} | values
    draft = check(STORES, body, from_json=True, creating=True)
    return await guest.site.db.write(stores.create, await owner_of(guest), draft)


async def read(guest: Guest, store_id: str) -> dict[str, Any]:
    """Return a store as the REST API shows it."""
    record = await guest.site.db.read(actions.read, await owner_of(guest), STORES, store_id)
    return members_of(record)


async def test_faults_stand_at_their_inputs(maria: Guest) -> None:
    bad = RULE | {"price": "cheap", "deadline": "1.5", "cepTo": "1"}
    page = await maria.submit(
        LIST, at=NEW, hostname="no host", name="", aliases="ok.example.com\nnot ok",
        cookieSameSite="lax",
        **row("shippingRules", 0, **RULE), **row("shippingRules", 1, **bad),
        **row("idps", 0, issuer="", clientIds="a", trustedDomains="", maxAgeSeconds=""),
    )  # fmt: skip
    assert page.status == 400
    for name in (
        "hostname", "name", "aliases", "shippingRules[1].price", "shippingRules[1].deadline",
        "shippingRules[1].cepTo", "idps[0].issuer",
    ):  # fmt: skip
        assert f'id="{name}-fault"' in page.html, name
    assert 'id="shippingRules[0].price-fault"' not in page.html
    # What was typed is still there.
    for text in ('value="cheap"', 'value="no host"', "not ok</textarea>", 'value="25,50"'):
        assert text in page.html
    assert "No stores yet" in (await maria.get(LIST)).html


async def test_a_form_that_is_out_of_date_changes_nothing(maria: Guest) -> None:
    record = await made(maria)
    path = f"{LIST}/{record.id}"
    form = await maria.get(f"{path}/edit")
    fields = fields_of(form.html)
    await maria.post(path, [(n, "First" if n == "name" else v) for n, v in fields])
    late = await maria.post(path, [(n, "Second" if n == "name" else v) for n, v in fields])
    assert late.status == 409
    assert "Somebody changed this" in late.html
    assert (await read(maria, record.id))["name"] == "First"


async def sent(guest: Guest, path: str, **fields: str) -> Seen:
    return await guest.post(path, [*fields.items()], follow=False)


async def section_of(guest: Guest, record: Record, name: str) -> dict[str, str]:
    """Return the hidden fields of a section of the form."""
    form = (await guest.get(f"{LIST}/{record.id}/edit")).html.partition(f'id="of-{name}"')[2]
    return dict(
        re.findall('type="hidden" name="([a-z_]+)" value="([^"]*)"', form.split("</form>")[0])
    )


async def test_each_section_is_saved_by_itself_and_keeps_what_others_hold(maria: Guest) -> None:
    record = await made(
        maria, pixKey="pix@shop.example.com", allowedOrigins=["https://shop.example.com"],
        reviewModeration=True,
    )  # fmt: skip
    path = f"{LIST}/{record.id}"
    identity, delivery = [await section_of(maria, record, n) for n in ("identity", "delivery")]
    saved = await sent(
        maria, path, **identity, hostname="shop.example.com", name="New", language="en"
    )
    assert saved.headers["Location"] == f"{path}/edit?saved=identity#of-identity"
    # Its page is older than the other section's save, but nobody has changed this section.
    rule = row("shippingRules", 0, **RULE, freeFrom="")
    assert (await sent(maria, path, **delivery, **rule)).status == 303
    now = await read(maria, record.id)
    assert (now["name"], now["active"]) == ("New", False)  # the box was not ticked
    assert [one["cepFrom"] for one in now["shippingRules"]] == ["01000000"]
    assert (now["pixKey"], now["reviewModeration"]) == ("pix@shop.example.com", True)
    assert now["allowedOrigins"] == ["https://shop.example.com"]
    # Now somebody has.
    late = await sent(
        maria, path, **delivery, **row("shippingRules", 0, **RULE | {"name": "Other"})
    )
    assert (late.status, "Somebody changed this" in late.html) == (409, True)


async def test_a_fault_leads_to_its_section_and_the_others_show_what_is_saved(maria: Guest) -> None:
    record = await made(maria, pixKey="pix@shop.example.com")
    hidden = await section_of(maria, record, "advanced")
    path = f"{LIST}/{record.id}"
    page = await sent(maria, path, **hidden, allowedOrigins="not an origin")
    assert page.status == 400
    notice = page.html.partition('role="alert">')[2].partition("</p>")[0]
    assert re.findall('href="#of-([a-z]+)"', notice) == ["advanced"]
    assert 'id="allowedOrigins-fault"' in page.html
    assert 'value="pix@shop.example.com"' in page.html


async def test_another_row_is_added_without_scripts(maria: Guest) -> None:
    record = await made(maria)
    hidden = await section_of(maria, record, "delivery") | {"more": "shippingRules"}
    page = await sent(maria, f"{LIST}/{record.id}", **hidden, **row("shippingRules", 0, **RULE))
    assert page.status == 200
    assert set(re.findall(r'name="shippingRules\[(\d)\]\.name"', page.html)) == {"0", "1"}
    assert 'value="25,50"' in page.html
    assert (await read(maria, record.id))["shippingRules"] == []


async def test_a_new_store_begins_with_its_identity(maria: Guest) -> None:
    form = (await maria.get(NEW)).html
    assert ('name="hostname"' in form, 'name="pixKey"' in form) == (True, False)
    made_at = await maria.submit(
        LIST, at=NEW, section="identity", hostname="a.example.com", name="A", language="en",
        active="true",
    )  # fmt: skip
    store = await read(maria, made_at.id)
    # What the form did not show has its default.
    assert (store["orderMails"], store["dealOnCheckout"], store["language"]) == (True, True, "en")


async def test_a_type_of_shipping_that_the_form_does_not_offer_stays(maria: Guest) -> None:
    rule = RULE | {"type": "my-own", "price": 25.5, "deadline": 2}
    record = await made(maria, shippingRules=[rule])
    form = (await maria.get(f"{LIST}/{record.id}/edit")).html
    assert '<option value="my-own" selected>my-own</option>' in form
    assert '<option value="pickup">' in form
    # CEPs are shown in their usual form and stored without it.
    assert 'value="01000-000"' in form
    assert (await read(maria, record.id))["shippingRules"][0]["cepFrom"] == "01000000"
