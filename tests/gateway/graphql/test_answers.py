"""Mutations that the database fails: UNAVAILABLE wrote nothing, OUTCOME_UNKNOWN perhaps."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.domain.storefront.checkouts.checkout import checkout
from gateway.domain.storefront.orders import addresses
from gateway.graphql import execution
from outbox.errors import DatabaseUnavailable
from tests.support.carts import sell
from tests.support.checkouts import ADDRESS, check_out, put, sign_up
from tests.support.failing import failing
from tests.support.shop import Shop
from tests.support.waiting import HANG_SECONDS

REFUSED = "The database is unavailable; try again."
MAYBE = "It may have been written. "
ADVICE = "Repeat a checkout with the same idempotencyKey; look before you repeat another mutation."


async def orders(shop: Shop) -> int:
    total: int = (await shop.owner.get("/api/orders")).body["total"]
    return total


async def test_a_refused_checkout_wrote_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=10))
    failing(monkeypatch, shop.db, "write", checkout, DatabaseUnavailable("busy", "no"))
    answer = await check_out(browser)
    assert (answer.code, answer.error["message"]) == ("UNAVAILABLE", REFUSED)
    assert await orders(shop) == 0


async def test_a_read_that_fails_behind_the_write_does_not_deny_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = shop.browser()
    await sign_up(browser)
    failing(monkeypatch, shop.db, "read", addresses.listed, DatabaseUnavailable("busy", "no"))
    answer = await browser.do("clientAddressSave", "address { street }", **ADDRESS)
    assert (answer.code, answer.error["message"]) == ("OUTCOME_UNKNOWN", MAYBE + ADVICE)
    found = await browser.ask("client(hostname: $h) { addresses { street } }")
    assert len(found["client"]["addresses"]) == 1


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
    assert answer.error["message"].endswith(MAYBE + ADVICE)
    assert await orders(shop) == 1
    monkeypatch.setattr(type(shop.db), "write", real)
    assert (await check_out(browser, idempotencyKey="k1")).data["checkout"]["order"]["number"]
    assert await orders(shop) == 1
