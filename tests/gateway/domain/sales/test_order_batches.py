"""Tests that an owner cancels many orders at once."""

from collections.abc import AsyncIterator

import pytest

from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.support.rest import RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving

PATH = "/api/orders/cancel"


@pytest.fixture
async def shop(api: RestApi) -> AsyncIterator[Shop]:
    shop = await open_shop(api)
    yield shop
    await shop.close()


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
