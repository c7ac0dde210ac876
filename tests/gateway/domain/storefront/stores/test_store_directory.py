"""What it costs to find whether a store allows an origin, and who is told of a change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.domain.storefront.stores import store_directory, store_origins
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from tests.support.counted import Counted
from tests.support.rest import Reply
from tests.support.shop import Shop, open_shop, opened

PAGE, OTHER = "https://pages.example", "https://other-pages.example"


@pytest.fixture
async def counted(still: Database) -> Counted:
    """A database that counts what requests read; its clock stands still."""
    return Counted(still, of_requests=True)


@pytest.fixture
async def shop(counted: Counted) -> AsyncIterator[Shop]:
    async with opened(counted, allowedOrigins=[PAGE]) as shop:
        yield shop


async def preflight(shop: Shop, origin: str) -> int:
    headers: dict[str, Any] = {"Access_Control_Request_Method": "POST", "Origin": origin}
    return (await shop.api.nobody.call("OPTIONS", "/graphql", **headers)).status


async def change(shop: Shop, **values: Any) -> Reply:
    reply = await shop.owner.put(f"/api/stores/{shop.store['id']}", values)
    assert reply.status == 200, reply.body
    return reply


async def test_requests_of_one_origin_at_once_share_a_read(shop: Shop, counted: Counted) -> None:
    counted.reset()
    assert {*await asyncio.gather(*(preflight(shop, PAGE) for _ in range(50)))} == {204}
    assert counted.units == 1


async def test_a_change_of_a_store_concerns_no_other_one(shop: Shop, counted: Counted) -> None:
    other = await open_shop(shop.api, "other.example", allowedOrigins=[OTHER])
    asked = {"query": '{ store(hostname: "shop.example") { name } }'}
    changes: list[dict[str, Any]] = [
        {"name": "Tea Shop"}, {"active": False}, {"active": True}, {"allowedOrigins": []}
    ]  # fmt: skip
    for values in changes:
        for _ in range(2):
            assert (await shop.api.nobody.post("/graphql", asked, Origin=PAGE)).status == 200
        await change(other, **values)
        counted.reset()
        assert (await shop.api.nobody.post("/graphql", asked, Origin=PAGE)).status == 200
        assert counted.units == 0, counted.statements
    await change(shop, name="Tea Shop", allowedOrigins=[])
    assert (await shop.api.nobody.post("/graphql", asked)).body["data"] == {
        "store": {"name": "Tea Shop"}
    }
    assert await preflight(shop, PAGE) == 403
    await other.close()


async def test_a_change_lists_what_a_node_of_the_version_before_wrote(shop: Shop) -> None:
    async def older(tx: Tx, origins: str) -> None:
        await tx.run("update stores set allowed_origins = $1", origins)

    await shop.db.write(older, f'["{PAGE}", "{OTHER}"]')
    await change(shop, name="Tea Shop")
    assert await preflight(shop, OTHER) == 204
    await shop.db.write(older, "[]")
    await change(shop, allowedOrigins=[OTHER])
    assert (await preflight(shop, PAGE), await preflight(shop, OTHER)) == (403, 204)


async def test_a_store_that_ends_or_rests_allows_nothing(shop: Shop) -> None:
    other = await open_shop(shop.api, "other.example", allowedOrigins=[PAGE, OTHER])

    async def allowed() -> tuple[int, int]:
        return await preflight(shop, PAGE), await preflight(shop, OTHER)

    assert await allowed() == (204, 204)
    await change(other, active=False)
    assert await allowed() == (204, 403)
    await change(other, allowedOrigins=[OTHER])
    assert await allowed() == (204, 403)
    await change(other, active=True)
    assert await allowed() == (204, 204)
    await change(shop, allowedOrigins=[])
    assert await allowed() == (403, 204)
    await other.owner.call("DELETE", f"/api/stores/{other.store['id']}")
    assert await allowed() == (403, 403)
    await other.close()


async def test_what_no_store_can_allow_is_not_read(shop: Shop, counted: Counted) -> None:
    for origin in ("null", "file://", "https://é%.example", f"https://{'a' * 300}"):
        counted.reset()
        assert await preflight(shop, origin) == 403
        assert [text for text in counted.statements if "store_origins" in text] == [], origin
    # Not every driver takes these as a parameter.
    assert not any(map(store_origins.may_be_one, ("https://\udcff.example", "https://a\0.example")))


@pytest.mark.slow
async def test_a_client_beyond_its_rate_costs_few_reads(still: Database) -> None:
    counted = Counted(still, of_requests=True)
    config = Config(limits=Limits(storefront_per_minute=1))
    async with opened(counted, config, allowedOrigins=[PAGE, OTHER]) as shop:

        async def ask(origin: str) -> tuple[int, bool]:
            answer = await shop.api.nobody.post("/graphql", {"query": "{ a }"}, Origin=origin)
            return answer.status, "Access-Control-Allow-Origin" in answer.headers

        assert await ask("https://first.example") == (403, False)
        # Nobody of this origin was within the rate.
        assert await ask(PAGE) == (429, True)
        counted.reset()
        for number in range(2 * store_directory.SPARE_READS):
            assert await ask(f"https://a{number}.example") == (429, False)
        assert counted.units == store_directory.SPARE_READS - 1
        assert await ask(PAGE) == (429, True)
