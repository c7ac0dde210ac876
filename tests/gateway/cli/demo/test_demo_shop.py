"""The server of the demo's shop page: what it serves, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gateway.cli.demo import goods
from gateway.cli.demo.shop import Shop

PAGE = Path(goods.__file__).parent / "page"


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop("http://127.0.0.1:1", "cafe.example")
    try:
        await shop.start()
        yield shop
    finally:
        await shop.stop()


async def test_the_page_with_all_it_needs(shop: Shop) -> None:
    async with aiohttp.ClientSession(shop.url) as http:
        async with http.get("/") as answer:
            page = await answer.text()
            policy = answer.headers["Content-Security-Policy"]
        assert 'data-api="http://127.0.0.1:1" data-hostname="cafe.example"' in page
        assert "connect-src 'self' http://127.0.0.1:1;" in policy
        wanted = re.findall(r'(?:src|href)="(/[^"]+)"', page)
        for script in PAGE.glob("*.js"):
            wanted += re.findall(r'from "(/[^"]+)"', script.read_text("utf-8"))
        wanted += [f"/pictures/{good.file}" for good in goods.GOODS]
        assert {"/shop.js", "/shop.css", "/cart.js", "/pictures/mark.svg"} <= set(wanted)
        for path in set(wanted):
            async with http.get(path) as answer:
                assert answer.status == 200, path


async def test_it_serves_nothing_else(shop: Shop) -> None:
    async with aiohttp.ClientSession(shop.url) as http:
        for path in ("/goods.py", "/..%2Fgoods.py", "/none.js", "/pictures/none.svg", "/page"):
            async with http.get(path) as answer:
                assert answer.status == 404, path


async def test_payments_need_json_and_a_store(shop: Shop) -> None:
    async with aiohttp.ClientSession(shop.url) as http:
        async with http.post("/pay", data='{"number": "1"}') as answer:
            assert answer.status == 415
        async with http.post("/pay", json={"number": "1"}) as answer:
            assert answer.status == 415
