"""Stores in the console: their form is made from the declaration, and nothing of it is lost."""

from typing import Any

from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.records.record import Record
from gateway.records.values.format import of_json
from gateway.rest.record_json import view
from outbox.database.transaction import Row, Tx
from tests.gateway.console.records.test_every_resource import fields_of
from tests.support.console import Guest

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
    draft = check(STORES, body, read=of_json, creating=True)
    return await guest.site.db.write(stores.create, await owner_of(guest), draft)


async def read(guest: Guest, store_id: str) -> dict[str, Any]:
    """Return a store as the REST API shows it."""
    record = await guest.site.db.read(actions.read, await owner_of(guest), STORES, store_id)
    return view(record).members


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
