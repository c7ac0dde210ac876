"""Tests that a first page which is sent again is the one that the database has now."""

from typing import Any

from gateway.domain.catalogue import RESOURCES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.records.resource import Resource
from gateway.rest.document.operations import path_of
from gateway.rest.first_pages import First, FirstPages, Key
from outbox.database.transaction import Tx
from tests.support.rest import Person, RestApi

LIMIT = 3


async def page_of(who: Person, resource: Resource) -> dict[str, Any]:
    """Return the first page; each of its records is the one that its own address has."""
    body: dict[str, Any] = (await who.get(f"{path_of(resource)}?limit={LIMIT}")).body
    for record in body["data"]:
        alone = await who.get(f"{path_of(resource)}/{record['id']}")
        assert alone.body == record
    return body


async def test_it_follows_what_changes_with_time_and_zone(api: RestApi, ana: Person) -> None:
    day = 86_400_000_000
    today = api.db.clock.wall() // day * day
    body = {"total": 1, "dueDate": "2030-01-01"}
    await ana.post("/api/invoices", body)
    items = [{"description": "x", "quantity": 1, "unitPrice": 1}]
    quote = (await ana.post("/api/quotes", {"items": items})).body["id"]
    await ana.post(f"/api/quotes/{quote}/send")

    async def end_on(tx: Tx, at: int) -> None:
        for table, ends, day in (
            ("invoices", "due_at", "due_day"), ("quotes", "valid_until", "valid_day"),
        ):  # fmt: skip
            await tx.run(
                f"update {table} set {ends} = $1, {day} = $2, version = version + 1", at, True
            )

    found = set()
    [invoices] = [resource for resource in RESOURCES if resource.table == "invoices"]
    [quotes] = [resource for resource in RESOURCES if resource.table == "quotes"]
    for days in (-1, 0):
        await api.db.write(end_on, today + days * day)
        # The zones are 25 hours apart, so each day has ended in only one of them.
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            await api.move(ana, zone)
            [shown] = (await page_of(ana, invoices))["data"]
            [offered] = (await page_of(ana, quotes))["data"]
            found.add((shown["overdue"], offered["status"] == "expired"))
    assert found == {(True, True), (False, False)}


async def test_each_owner_and_scope_has_its_own(api: RestApi, ana: Person, bia: Person) -> None:
    await ana.post("/api/contacts", {"name": "Maria"})
    assert (await page_of(ana, CONTACTS))["total"] == 1
    assert (await page_of(bia, CONTACTS))["total"] == 0
    blind = await api.key_of(ana.user_id, scopes=["write"])
    reply = await blind.get(f"/api/contacts?limit={LIMIT}")
    assert (reply.status, reply.body["code"]) == (403, "forbidden")


def first(size: int) -> First:
    return First([1, False], b"x" * size, None)


def test_the_memory_of_kept_pages_is_bounded() -> None:
    pages = FirstPages(most=160_000)
    keys: list[Key] = [("contacts", f"o{n}", 20) for n in range(100)]
    for key in keys:
        pages.put(key, first(8_000))
        # The first one stays, because it is read again and again.
        assert pages.get(keys[0]) is not None
        assert pages.held <= pages.most
    alive = [key for key in keys if pages.get(key) is not None]
    assert alive == [keys[0], *keys[-(len(alive) - 1) :]]
    assert len(alive) == 160_000 // first(8_000).size
    pages.put(keys[0], first(1_000))
    assert pages.held == sum(found.size for key in alive if (found := pages.get(key)) is not None)
    pages.put(keys[0], first(10_001))
    assert pages.get(keys[0]) is None
