"""Tests that an owner cancels many orders at once."""

from collections.abc import AsyncIterator

import pytest

from gateway.domain.sales.order_batches import MOST
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.support.orders import pay, placed, product, stock_of
from tests.support.rest import Person, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving

PATH = "/api/orders/cancel"


@pytest.fixture
async def shop(api: RestApi) -> AsyncIterator[Shop]:
    shop = await open_shop(api)
    yield shop
    await shop.close()


async def test_many_orders_are_canceled_each_by_itself(shop: Shop, bia: Person) -> None:
    coffee = await product(shop.owner)
    orders = [await placed(shop, {coffee: 1}) for _ in range(4)]
    ids = [order["id"] for order in orders]
    assert (await pay(shop.owner, orders[1])).status == 200
    missing = shop.db.ids.new(1)
    sent = {"ids": [*ids, ids[0], missing], "reason": "Never paid"}
    reply = await shop.owner.post(PATH, sent)
    assert reply.status == 200, reply.body
    assert reply.body["canceled"] == [ids[0], ids[2], ids[3]]
    assert [(each["id"], each["code"]) for each in reply.body["refused"]] == [
        (ids[1], "invalid_transition"), (missing, "not_found"),
    ]  # fmt: skip
    assert "paid is final" in reply.body["refused"][0]["message"]
    assert await stock_of(shop.owner, coffee) == 9
    after = (await shop.owner.get(f"/api/orders/{ids[2]}")).body
    assert (after["status"], after["reason"]) == ("canceled", "Never paid")
    invoice = (await shop.owner.get(f"/api/invoices/{after['invoiceId']}")).body
    assert invoice["status"] == "canceled"
    # A repeat changes nothing, and another account none of them.
    again = await shop.owner.post(PATH, {"ids": ids})
    assert again.body["canceled"] == [ids[0], ids[2], ids[3]]
    assert (await shop.owner.get(f"/api/orders/{ids[2]}")).body == after
    other = await bia.post(PATH, {"ids": ids})
    assert [each["code"] for each in other.body["refused"]] == ["forbidden"] * 4


async def test_faults_of_a_selection(shop: Shop) -> None:
    for body, code in (
        ({}, "required"), ({"ids": None}, "not_nullable"), ({"ids": "all"}, "wrong_type"),
        ({"ids": []}, "too_few"), ({"ids": [shop.db.ids.new(1) for _ in range(101)]}, "too_many"),
    ):  # fmt: skip
        reply = await shop.owner.post(PATH, body)
        assert (reply.status, reply.faults) == (400, {"ids": code}), body
    reply = await shop.owner.post(PATH, {"ids": ["x"], "reason": 1})
    assert (reply.status, set(reply.faults)) == (400, {"ids[0]", "reason"})


async def test_a_selection_needs_a_writer_and_pays_for_each_order(still: Database) -> None:
    async with serving(still, Config(limits=Limits(write_per_second=5, burst=4))) as site:
        api = RestApi(site)
        owner = await api.person()
        reader = await api.key_of(owner.user_id, ("read",))
        ids = [still.ids.new(1) for _ in range(15)]
        assert (await reader.post(PATH, {"ids": ids})).status == 403
        assert (await owner.post(PATH, {"ids": ids})).status == 200
        assert (await owner.post(PATH, {"ids": ids})).status == 429


async def test_a_selection_that_costs_more_than_a_burst_needs_a_whole_one(still: Database) -> None:
    async with serving(still, Config(limits=Limits(write_per_second=50, burst=1))) as site:
        owner = await RestApi(site).person()
        ids = [still.ids.new(1) for _ in range(MOST)]
        assert (await owner.post(PATH, {"ids": ids})).status == 200
