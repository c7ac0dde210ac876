"""A person is erased once, with the same result whatever comes in between."""

import asyncio
import json
from typing import Any

import pytest

from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.imports.importing import Importing
from gateway.domain.privacy import certificates, persons
from gateway.domain.privacy.persons import Persons
from gateway.domain.storefront.carts import changes
from gateway.domain.storefront.checkouts.checkout import checkout, read_input
from gateway.domain.storefront.checkouts.repeats import Tokens
from gateway.domain.storefront.privacy import customer_erasure
from gateway.records.audit import Actor
from gateway.records.values.global_ids import record_id
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Row, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.upkeep import erasure_requests
from outbox.webhooks import Draft, create
from tests.gateway.graphql.test_late_writers import between, guest
from tests.outbox.queue.replays.test_replay import ROOM
from tests.support.carts import sell
from tests.support.checkouts import BUYER, bought, check_out, put, sign_up
from tests.support.shop import Shop

EMAIL = BUYER["email"]


async def rows(shop: Shop, sql: str, *args: Any) -> list[Row]:
    async def unit(tx: Tx) -> list[Row]:
        return await tx.all(sql, *args)

    return await (shop.db.write if sql.startswith("update") else shop.db.read)(unit)


async def contact(shop: Shop, **values: Any) -> str:
    body = {"name": "Maria da Silva", "email": EMAIL, **values}
    made = await shop.owner.post("/api/contacts", body)
    assert made.status == 201, made.body
    return str(made.body["id"])


async def run(shop: Shop) -> None:
    """Run the duty as the server does, with the fan-out before it."""
    await shop.db.write(fan_out, ROOM)
    await Persons(shop.db, shop.api.site.app[KEYRING]).run_once()


async def erased(shop: Shop, path: str) -> Any:
    """Erase the person at `path`; return the certificate."""
    started = await shop.owner.post(f"{path}/erase")
    assert started.status == 202, started.body
    assert started.headers["Location"] == f"/api/erasures/{started.body['id']}"
    await run(shop)
    # The tests' database is no server's, so its log is never emptied.
    done = await shop.owner.get(started.headers["Location"])
    assert done.status == 200
    return done.body


@pytest.fixture(autouse=True)
def scrubbed(monkeypatch: pytest.MonkeyPatch, shop: Shop) -> None:
    """Count the files of the test's database as clean; tests/system searches those of a server."""
    if shop.db.engine == "sqlite":

        async def scrub(tables: Any) -> bool:
            return True

        monkeypatch.setattr(shop.db, "scrub", scrub)


async def test_all_that_has_the_email_goes_and_sales_stay_without_the_person(shop: Shop) -> None:
    contact_id = await contact(shop)
    other = await contact(shop, email=EMAIL.upper(), name="M. Silva")
    stranger = await contact(shop, email="rui@example.com", name="Rui Silva")
    await sign_up(shop.browser())
    _, order = await bought(shop)
    deal = await shop.owner.post(
        "/api/deals", {"title": "Deal of Maria", "value": 5, "contactIds": [contact_id, stranger]}
    )
    await shop.owner.post("/api/contacts", {"name": "Maria da Silva"}, Idempotency_Key="k")
    certificate = await erased(shop, f"/api/contacts/{contact_id}")
    assert certificate["state"] == "done"
    assert set(certificate["recordIds"]) >= {contact_id, other}
    assert certificate["erased"]["contacts"] == 2
    assert certificate["erased"]["clients"] == 1
    assert certificate["erased"]["storedResponses"] >= 1
    assert {"what": "orders", "count": 1, "why": certificates.why("orders")} in certificate["kept"]
    assert certificate["seal"]["intact"] is True
    assert [row["name"] for row in await rows(shop, "select name from contacts order by id")] == [
        "Rui Silva", "Maria da Silva",
    ]  # fmt: skip
    kept = (await shop.owner.get(f"/api/deals/{deal.body['id']}")).body
    assert (kept["title"], kept["contactIds"]) == ("Deal of ***", [stranger])
    [stays] = (await shop.owner.get(f"/api/orders?number={order['number']}")).body["data"]
    assert (stays["name"], stays["total"]) == ("Erased customer", 30)
    listed = (await shop.owner.get("/api/erasures?limit=1")).body
    assert listed == {"data": [certificate]}
    for table in ("person_erasures where person is not null", "erasures"):
        assert await rows(shop, f"select * from {table}") == []


@pytest.mark.parametrize("named", ["ana@exämple.de", "ana@xn--exmple-cua.de"])
async def test_both_spellings_of_a_domain_are_the_person(shop: Shop, named: str) -> None:
    spellings = ("Ana@exämple.de", "ana@xn--exmple-cua.de")
    for email in spellings:
        await contact(shop, email=email, name="Ana")
    product = await sell(shop, 100)
    for email in spellings:
        browser = shop.browser()
        await put(browser, product)
        assert (await check_out(browser, email=email)).data
    for email, folded in zip(spellings, ("ana@exämple.de", None), strict=True):
        await sign_up(shop.browser(), email=email)
        if folded:
            # Two accounts have had one mailbox since before IDNA.
            await rows(shop, "update customer_emails set value = $1 returning value", folded)
    await rows(shop, "update customers set contact_id = null returning id")
    note = await shop.owner.post("/api/tasks", {"title": f"Write to {' or '.join(spellings)}"})
    contact_id = await contact(shop, email=named, name="Ana")
    await shop.owner.put(f"/api/tasks/{note.body['id']}", {"contactId": contact_id})
    await erased(shop, f"/api/contacts/{contact_id}")
    for table in ("contacts", "customers"):
        assert await rows(shop, f"select id from {table}") == []
    assert {row["email"] for row in await rows(shop, "select email from orders")} == {
        "erased@invalid.invalid"
    }
    task = (await shop.owner.get(f"/api/tasks/{note.body['id']}")).body
    assert task["title"] == "Write to *** or ***"


async def test_a_stored_response_keeps_the_id_so_that_nothing_is_made_twice(shop: Shop) -> None:
    body = {"name": "Maria da Silva", "email": EMAIL}
    first = await shop.owner.post("/api/contacts", body, Idempotency_Key="k1")
    await erased(shop, f"/api/contacts/{first.body['id']}")
    again = await shop.owner.post("/api/contacts", body, Idempotency_Key="k1")
    assert (again.status, again.body) == (201, {"id": first.body["id"]})
    assert await rows(shop, "select * from contacts") == []


async def test_a_repeated_batch_makes_nothing_twice_either(shop: Shop) -> None:
    batch = {"items": [{"name": "Maria da Silva", "email": EMAIL}, {"name": "Rui"}]}
    for atomic in (False, True):
        body = {**batch, "atomic": atomic}
        first = await shop.owner.post("/api/contacts/batch", body, Idempotency_Key=f"k{atomic}")
        assert [one["status"] for one in first.body["results"]] == [201, 201]
        maria = first.body["results"][0]["id"]
        await erased(shop, f"/api/contacts/{maria}")
        again = await shop.owner.post("/api/contacts/batch", body, Idempotency_Key=f"k{atomic}")
        assert [one["id"] for one in again.body["results"]] == [
            one["id"] for one in first.body["results"]
        ]
    assert {row["name"] for row in await rows(shop, "select name from contacts")} == {"Rui"}


async def test_lines_that_wait_for_their_import_go_with_the_person(shop: Shop) -> None:
    contact_id = await contact(shop)
    file = f"id,name,email\n,Maria,{EMAIL.upper()}\n,Rui,rui@example.com\n{contact_id},Maria,\n"
    sent = await shop.owner.call(
        "POST", "/api/import/contacts", data=file.encode(), Content_Type="text/csv"
    )
    assert sent.status == 202, sent.body
    certificate = await erased(shop, f"/api/contacts/{contact_id}")
    assert certificate["erased"]["importLines"] == 2
    await Importing(shop.db).run_once()
    assert [row["name"] for row in await rows(shop, "select name from contacts")] == ["Rui"]


async def test_an_account_with_another_email_does_not_spread_the_erasure(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser, "joint@example.com")
    [made] = await rows(shop, "select id, contact_id from customers")
    path = f"/api/contacts/{made['contact_id']}"
    assert (await shop.owner.put(path, {"email": EMAIL})).status == 200
    other = await contact(shop, email="joint@example.com", name="Rui")
    await erased(shop, path)
    assert await rows(shop, "select * from customers") == []
    assert [row["id"] for row in await rows(shop, "select id from contacts")] == [other]


async def test_a_damaged_request_makes_no_certificate_until_it_is_repeated(shop: Shop) -> None:
    contact_id = await contact(shop)
    started = await shop.owner.post(f"/api/contacts/{contact_id}/erase")

    async def damage(tx: Tx) -> None:
        await tx.run("update erasures set record_ids = '{}'")

    await shop.db.write(damage)
    await run(shop)
    where = started.headers["Location"]
    assert (await shop.owner.get(where)).body["state"] == "running"
    actor = Actor(shop.owner.user_id, "system")
    await shop.db.write(certificates.command, actor, CONTACTS, contact_id)
    await run(shop)
    done = (await shop.owner.get(where)).body
    assert (done["state"], done["erased"]["events"]) == ("done", 1)


async def test_two_requests_at_once_are_one_erasure(shop: Shop) -> None:
    contact_id = await contact(shop)
    both = await asyncio.gather(
        *(shop.owner.post(f"/api/contacts/{contact_id}/erase") for _ in range(4))
    )
    assert {reply.status for reply in both} == {202}
    assert len({reply.body["id"] for reply in both}) == 1
    await run(shop)
    again = await shop.owner.post(f"/api/contacts/{contact_id}/erase")
    assert again.status == 200
    assert again.body["erased"]["contacts"] == 1


async def test_a_deleted_contact_is_erased_as_long_as_its_events_last(shop: Shop) -> None:
    contact_id = await contact(shop)
    assert (await shop.owner.delete(f"/api/contacts/{contact_id}")).status == 200
    await shop.db.write(fan_out, ROOM)
    certificate = await erased(shop, f"/api/contacts/{contact_id}")
    assert certificate["erased"] == {"events": 1}
    nothing = await shop.owner.post(f"/api/contacts/{'0' * 24}/erase")
    assert nothing.status == 404
    other = await shop.api.person()
    assert (await other.get(f"/api/erasures/{certificate['id']}")).status == 403


async def test_a_key_that_may_not_write_learns_first_what_is_there(shop: Shop) -> None:
    there, deleted, gone = [await contact(shop, email=f"p{n}@example.com") for n in range(3)]
    assert (await shop.owner.delete(f"/api/contacts/{deleted}")).status == 200
    await shop.db.write(fan_out, ROOM)
    await erased(shop, f"/api/contacts/{gone}")
    other = await shop.api.person()
    theirs = (await other.post("/api/contacts", {"name": "Rui"})).body["id"]
    reader = await shop.api.key_of(shop.owner.user_id, ["read"])
    for contact_id, status in (
        ("f" * 24, 404), ("x", 404), (theirs, 403), (there, 403), (deleted, 403), (gone, 403),
    ):  # fmt: skip
        reply = await reader.post(f"/api/contacts/{contact_id}/erase")
        assert reply.status == status, contact_id
    assert len(await rows(shop, "select id from person_erasures")) == 1
    for contact_id, status in ((there, 202), (deleted, 202), (gone, 200)):
        assert (await shop.owner.post(f"/api/contacts/{contact_id}/erase")).status == status


async def test_a_customer_without_a_contact_is_exported_and_erased(shop: Shop) -> None:
    await sign_up(shop.browser())
    [made] = await rows(shop, "select id, contact_id from customers")
    assert (await shop.owner.delete(f"/api/contacts/{made['contact_id']}")).status == 200
    path = f"/api/clients/{made['id']}"
    file = await shop.owner.get(f"{path}/data-export")
    assert file.status == 200
    assert file.body["clients"][0]["account"]["email"] == EMAIL
    assert file.body["clients"][0]["sessions"]
    certificate = await erased(shop, path)
    assert certificate["erased"]["clients"] == 1
    assert await rows(shop, "select * from customers") == []


async def test_a_customer_who_erases_the_account_gets_a_certificate_too(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    answer = await browser.do("clientDeleteAccount", "success", password="secret123")
    assert answer.data
    await run(shop)
    [certificate] = (await shop.owner.get("/api/erasures")).body["data"]
    assert (certificate["resource"], certificate["state"]) == ("clients", "done")
    assert certificate["erased"]["clients"] == 1


async def test_a_customer_with_many_orders_waits_for_some_of_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request does the first ones, the duty the rest: of the account, and guest orders."""
    monkeypatch.setattr(customer_erasure, "ORDERS_AT_ONCE", 1)
    browser = shop.browser()
    await sign_up(browser)
    for number in range(6):
        buyer = browser if number < 3 else shop.browser()
        await put(buyer, await sell(shop, 30, stock=10))
        assert (await check_out(buyer, email=EMAIL)).data["checkout"]["order"]
    # Another mailbox and another store's guests are not the customer's.
    await bought(shop, email="rui@example.com")
    await rows(shop, "update customers set email_verified = true")
    assert (await browser.do("clientDeleteAccount", "success", password="secret123")).data
    left = "select email from orders where email <> 'erased@invalid.invalid' order by email"
    assert len(await rows(shop, left)) == 5
    await run(shop)
    assert [row["email"] for row in await rows(shop, left)] == ["rui@example.com"]
    [certificate] = (await shop.owner.get("/api/erasures")).body["data"]
    assert {one["what"]: one.get("count") for one in certificate["kept"]}["orders"] == 6


async def test_the_log_of_many_erasures_ends_in_small_transactions(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many requests as one transaction takes, and no more; no count is lost."""
    monkeypatch.setattr(persons, "REQUESTS", 2)
    ids = [await contact(shop, email=f"maria{number}@example.com") for number in range(3)]
    await shop.db.write(fan_out, ROOM)
    for one in ids:
        assert (await shop.owner.post(f"/api/contacts/{one}/erase")).status == 202
    [first, *_] = found = await rows(shop, "select id from person_erasures order by id")
    for _ in range(4):
        await shop.db.write(
            erasure_requests.request, shop.owner.user_id, ["0" * 24], (), first["id"]
        )
    real, sizes = erasure_requests.take, list[int]()

    async def take(tx: Tx, subject: str, limit: int) -> Any:
        taken = await real(tx, subject, limit)
        sizes.append(len(taken))
        return taken

    monkeypatch.setattr(erasure_requests, "take", take)
    await run(shop)
    assert max(sizes) == 2
    assert sum(sizes) == 7
    for row in found:
        certificate = (await shop.owner.get(f"/api/erasures/{row['id']}")).body
        assert certificate["erased"] == {"contacts": 1, "events": 1}
    assert await rows(shop, "select id from erasures") == []


async def test_receivers_are_told_without_personal_data(shop: Shop) -> None:
    ring = shop.api.site.app[KEYRING]

    async def listen(tx: Tx) -> str:
        draft = Draft(url="https://ops.example.com/", events=("person.erased",))
        return await create(
            tx, owner_id=shop.owner.user_id, draft=draft, secret="whsec_" + "A" * 43 + "=",
            ring=ring,
        )  # fmt: skip

    webhook_id = await shop.db.write(listen)
    contact_id = await contact(shop)
    certificate = await erased(shop, f"/api/contacts/{contact_id}")
    [event] = await rows(shop, "select * from events where name = 'person.erased'")
    assert event["webhook_id"] == webhook_id
    body = json.loads(bytes(event["body"]))
    assert body["data"] == {
        "id": certificate["id"], "recordIds": [contact_id],
        "requestedAt": certificate["requestedAt"], "erasedAt": certificate["completedAt"],
    }  # fmt: skip
    await shop.db.write(fan_out, ROOM)
    [delivery] = await rows(shop, "select origin from deliveries where event_id = $1", event["id"])
    assert delivery["origin"] == "event"


async def test_a_checkout_at_the_same_time_is_erased_or_a_new_person(shop: Shop) -> None:
    product_id = record_id(await sell(shop, 30, stock=10), "Product", "id")
    contact_id = await contact(shop)
    visitor = await guest(shop)
    ring = shop.api.site.app[KEYRING]

    async def fill(tx: Tx) -> None:
        await changes.add(tx, visitor, product_id, 1, limiting=True)

    await shop.db.write(fill)
    wanted = read_input({**BUYER, "idempotencyKey": "k1"})

    async def order(tx: Tx) -> Any:
        return await checkout(tx, visitor, wanted, Tokens("access", "cart"), ring, 3)

    async def erase() -> None:
        reply = await shop.owner.post(f"/api/contacts/{contact_id}/erase")
        assert reply.status == 202
        await run(shop)

    await between(shop, "insert into orders", order, erase)
    await run(shop)
    # Nothing points to a contact that is gone, and no order has a person without a contact.
    left = await rows(
        shop, "select contact_id, name from orders where name <> 'Erased customer'"
        " and contact_id not in (select id from contacts)"
    )  # fmt: skip
    assert left == []
    orders = await rows(shop, "select name, contact_id from orders")
    assert all((row["contact_id"] is None) == (row["name"] == "Erased customer") for row in orders)
