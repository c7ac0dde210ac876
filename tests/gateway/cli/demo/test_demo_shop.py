"""The server of the demo's shop page: what it serves, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gateway.cli.demo import demo_goods
from gateway.cli.demo.shop import Shop

PAGE = Path(demo_goods.__file__).parent / "page"


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
        wanted += [f"/pictures/{good.file}" for good in demo_goods.GOODS]
        assert {"/shop.js", "/shop.css", "/cart.js", "/pictures/mark.svg"} <= set(wanted)
        for path in set(wanted):
            async with http.get(path) as answer:
                assert answer.status == 200, path


async def test_the_page_follows_the_browser(shop: Shop) -> None:
    shop.portuguese = "cafe-br.example"
    async with aiohttp.ClientSession(shop.url) as http:
        for asked, language in (
            ("pt-BR,pt;q=0.9,en;q=0.8", "pt-BR"), ("pt-PT", "pt-BR"), ("en-US,en", "en"),
            ("fr", "en"), ("", "en"),
        ):  # fmt: skip
            async with http.get("/", headers={"Accept-Language": asked}) as answer:
                page, vary = await answer.text(), answer.headers["Vary"]
            hostname = "cafe-br.example" if language == "pt-BR" else "cafe.example"
            assert f'<html lang="{language}"' in page
            assert (f'data-hostname="{hostname}"' in page, vary) == (True, "Accept-Language")


def test_every_word_of_the_shop_is_portuguese_too() -> None:
    words = (PAGE / "words.js").read_text("utf-8")
    known = set(re.findall(r'^  "(.+?)": ".+",$', words, re.M))
    sources = "".join(path.read_text("utf-8") for path in PAGE.glob("*.js"))
    used = set(re.findall(r'\bt\("([^"]+)"', sources))
    page = (PAGE / "index.html").read_text("utf-8")
    used |= set(re.findall(r" data-t>([^<]+)<", page)) | set(
        re.findall('label="([^"]+)" data-t', page)
    )
    of_orders = {"pending", "paid", "canceled", "expired", "pix", "boleto", "card"}
    assert used - known == set()
    assert known - used == of_orders
    goods_of = {text for good in demo_goods.GOODS for text in (good.name, good.description)}
    assert (goods_of | set(demo_goods.CATEGORIES)) - demo_goods.PORTUGUESE.keys() == set()


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
