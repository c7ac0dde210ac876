"""The adapter of payments.md, against the server: it reads a token and reports a payment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlsplit

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.docs.pages import blocks
from tests.support.carts import sell
from tests.support.checkouts import put
from tests.support.databases import SqliteFiles
from tests.support.provider import stage
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving

PAGE = "docs/how-to/accept-payments.md"


@pytest.fixture
async def shop(tmp_path: Path, sqlite_files: SqliteFiles) -> AsyncIterator[Shop]:
    """A store on SQLite: the page is about the API."""
    db = await database.open(
        await sqlite_files.fresh(tmp_path), clock=SystemClock(), ids=Ids(), serving=True
    )
    async with serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site), checkoutUrl="https://pay.example/?token={token}")
        yield shop
        await shop.close()
    await db.close()


async def test_the_adapter_of_the_page(shop: Shop) -> None:
    [block] = [one for one in blocks(PAGE) if one.name == "adapter.py"]
    adapter: dict[str, Any] = {}
    exec(compile(block.text, str(block), "exec"), adapter)
    secret = await stage(shop)
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=10))
    buyer = {"email": "maria@example.com", "name": "Maria", "paymentMethod": "card"}
    answer = await browser.do("checkout", "order { number checkoutUrl }", **buyer)
    order = answer.data["checkout"]["order"]
    [token] = parse_qs(urlsplit(order["checkoutUrl"]).query)["token"]
    claims = adapter["claims_of"](token, secret)
    assert (claims["orderNumber"], claims["amount"]) == (order["number"], 30)
    for forged in (token[:-2] + "AA", "x." + token.partition(".")[2]):
        with pytest.raises(ValueError, match="forged"):
            adapter["claims_of"](forged, secret)
    server = shop.api.site.url

    async def report(**changed: Any) -> Any:
        return await asyncio.to_thread(
            adapter["report"], server, secret, {**claims, **changed}, "ch_1"
        )

    with pytest.raises(HTTPError, match="400"):
        await report(amount=1)
    assert await report() == {
        "orderNumber": order["number"], "orderStatus": "paid", "reference": "ch_1", "late": False,
    }  # fmt: skip
    assert (await report())["orderStatus"] == "paid"
