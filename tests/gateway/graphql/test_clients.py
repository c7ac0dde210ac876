"""Customers for the owner of their store: list, read, change little, erase."""

import pytest

from tests.gateway.graphql.test_accounts import ANA, log_in, sign_up, user_of
from tests.support.shop import Shop


@pytest.fixture
async def client_id(shop: Shop) -> str:
    """A customer, Ana."""
    await sign_up(shop.browser(), phone="11 98888-7777")
    [client] = (await shop.owner.get("/api/clients")).body["data"]
    return str(client["id"])


async def test_owners_see_their_customers_without_secrets(shop: Shop, client_id: str) -> None:
    reply = await shop.owner.get(f"/api/clients/{client_id}")
    [contact] = (await shop.owner.get("/api/contacts")).body["data"]
    assert reply.body == {
        "id": client_id, "storeId": shop.store["id"], "name": "Ana Souza",
        "email": "Ana@Example.com", "phone": "11 98888-7777", "emailVerified": False,
        "acceptsMarketing": False, "contactId": contact["id"],
        "createdAt": reply.body["createdAt"],
    }  # fmt: skip
    assert "argon2" not in reply.text


async def test_customers_are_found(shop: Shop, client_id: str) -> None:
    other = {"hostname": "other.example", "name": "Other"}
    store_id = (await shop.owner.post("/api/stores", other)).body["id"]
    await sign_up(shop.browser(), hostname="other.example", name="Bia", email="bia@b.example")
    for query, names in (
        ("", {"Ana Souza", "Bia"}), (f"?storeId={store_id}", {"Bia"}),
        ("?search=ana@ex", {"Ana Souza"}), ("?search=nobody", set()),
        (f"?ids={client_id}", {"Ana Souza"}),
    ):  # fmt: skip
        page = (await shop.owner.get(f"/api/clients{query}")).body
        assert {one["name"] for one in page["data"]} == names, query


async def test_owners_change_little(shop: Shop, client_id: str) -> None:
    path = f"/api/clients/{client_id}"
    changed = await shop.owner.put(
        path,
        {"name": "Ana Lima", "acceptsMarketing": True, "email": "eve@e.example",
         "emailVerified": True, "storeId": "0" * 24, "password": "x"},
    )  # fmt: skip
    assert changed.status == 200
    assert changed.body["name"] == "Ana Lima"
    assert changed.body["email"] == "Ana@Example.com"
    assert changed.body["emailVerified"] is False
    ignored = set(changed.headers["X-Ignored-Fields"].split(", "))
    assert ignored == {"email", "emailVerified", "storeId", "password"}
    assert (await shop.owner.put(path, {"name": None})).status == 400
    assert (await shop.owner.post("/api/clients", ANA)).status == 405
    assert await shop.api.events() == [("contact.created", (await shop.api.events())[0][1])]


async def test_an_erased_customer_is_signed_out(shop: Shop) -> None:
    browser = shop.browser()
    await sign_up(browser)
    [client] = (await shop.owner.get("/api/clients")).body["data"]
    path = f"/api/clients/{client['id']}"
    assert (await shop.owner.delete(path, If_Match='"77"')).status == 412
    gone = await shop.owner.delete(path)
    assert (gone.status, gone.body["id"]) == (200, client["id"])
    assert await user_of(browser) is None
    assert (await log_in(browser)).code == "INVALID_CREDENTIALS"
    assert (await shop.owner.get(path)).status == 404
    assert (await shop.owner.delete(path)).status == 404
