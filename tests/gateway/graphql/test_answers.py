"""Mutations that the database fails: UNAVAILABLE wrote nothing, OUTCOME_UNKNOWN perhaps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.domain.storefront.checkouts.checkout import checkout
from gateway.graphql import execution
from tests.support.carts import sell
from tests.support.checkouts import check_out, put
from tests.support.shop import Shop
from tests.support.waiting import HANG_SECONDS


async def orders(shop: Shop) -> int:
    total: int = (await shop.owner.get("/api/orders")).body["total"]
    return total


async def test_a_mutation_that_takes_too_long_may_have_been_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=10))
    real = type(shop.db).write

    async def slow(self: Any, unit: Any, *args: Any, **kwargs: Any) -> Any:
        result = await real(self, unit, *args, **kwargs)
        if unit is checkout:
            await asyncio.Event().wait()
        return result

    monkeypatch.setattr(type(shop.db), "write", slow)
    # On a busy machine the first deadline may come before the write.
    for seconds in (0.5, 5.0, HANG_SECONDS):
        monkeypatch.setattr(execution, "SECONDS", seconds)
        answer = await check_out(browser, idempotencyKey="k1")
        if answer.code == "OUTCOME_UNKNOWN":
            break
    assert answer.code == "OUTCOME_UNKNOWN"
    assert "pode ter sido gravada" in answer.error["message"]
    assert await orders(shop) == 1
    monkeypatch.setattr(type(shop.db), "write", real)
    assert (await check_out(browser, idempotencyKey="k1")).data["checkout"]["order"]["number"]
    assert await orders(shop) == 1
