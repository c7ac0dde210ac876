"""Concurrent checkouts sell nothing twice; a killed node does not either (checkout races)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import pytest

from gateway.domain.accounts import api_keys, users
from gateway.domain.sales import coupons, discounts, stock
from gateway.domain.storefront.carts import cart_lifecycle, rows
from gateway.records.values.global_ids import global_id
from gateway.server.config import environment_name
from outbox.webhooks.secrets import new_key_line
from tests.gateway.graphql.test_checkout_races import coupon_with_one_use, hundred_buyers, one_cart
from tests.support.databases import PostgresServer
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.ledger import query
from tests.support.process import Serving, serving_process
from tests.support.rest import UNLIMITED, VISITOR_LIMITS, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving
from tests.system.staging import opened, several

ROUNDS = 20
TRIES = 5
RACES = {
    "one cart": one_cart,
    "a hundred buyers of ten items": hundred_buyers,
    "a coupon with one use left": coupon_with_one_use,
}


async def _left_open(*_: Any) -> None:
    """Leave the cart as it is."""


def _applies(*_: Any) -> None:
    """Let the coupon apply."""


def without(place: ModuleType, name: str, old: str, new: str = "") -> tuple[ModuleType, str, str]:
    """Return a change of a statement."""
    text = getattr(place, name)
    assert old in text
    return place, name, text.replace(old, new)


GUARDS: Mapping[str, tuple[str, tuple[tuple[ModuleType, str, Any], ...]]] = {
    "stock is taken without looking": (
        "a hundred buyers of ten items", (without(stock, "_TAKE", " and stock >= $2"),),
    ),
    "coupons are used without looking": (
        "a coupon with one use left",
        (without(coupons, "_TAKE", "max_uses is null or uses < max_uses", "true"),
         (discounts, "must_apply", _applies)),
    ),
    "carts stay open": ("one cart", ((cart_lifecycle, "close", _left_open),)),
    "carts are not locked": (
        "one cart",
        ((rows, "_LOCK", ""), without(cart_lifecycle, "_END", " and state = 'active'")),
    ),
}  # fmt: skip
"""What to break, and the race that must show it."""


@asynccontextmanager
async def _shop(engine: Engine) -> AsyncIterator[Shop]:
    async with opened(engine) as db, serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        try:
            yield shop
        finally:
            await shop.close()


@ENGINES
@pytest.mark.parametrize("name", RACES)
async def test_races_sell_nothing_twice(engine: Engine, name: str) -> None:
    async with _shop(engine) as shop:
        for _ in range(ROUNDS):
            assert await RACES[name](shop) == []


@pytest.mark.parametrize("guard", GUARDS)
@ENGINES
async def test_a_guard_that_is_off_shows(
    engine: Engine, guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, changes = GUARDS[guard]
    # On SQLite the only writer is lock enough.
    shown = engine == "postgres" or guard != "carts are not locked"
    findings: list[str] = []
    async with _shop(engine) as shop:
        for change in changes:
            monkeypatch.setattr(*change)
        for _ in range(TRIES):
            findings = findings or await RACES[name](shop)
        monkeypatch.undo()
    assert bool(findings) == shown, findings


HOST = "shop.example"
KILLS = 4
LONGEST = 0.12
"""Seconds after which a node is killed, at most: about as long as a checkout takes."""
_ADD = """mutation ($input: ShoppingCartAddProductMutationInput!) {
  shoppingCartAddProduct(input: $input) { shoppingCart { totalQuantity } } }"""
_ORDER = """mutation ($input: CheckoutMutationInput!) {
  checkout(input: $input) { order { number accessToken } } }"""


async def test_a_killed_node_orders_a_cart_once(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Each cart is ordered on two nodes, one of which dies, and again on the other."""
    url, dice = await postgres_server.fresh(), random.Random(80261)
    async with several(url, 1) as [db]:
        owner = await db.write(users.add, email="o@example.com", name="Owner", password_hash="-")
        key, scopes = api_keys.make(db.ids), ("read", "write")
        await db.write(api_keys.add, owner, api_keys.KeyDraft("test", key, scopes, None))
        settings = {
            "CARTEIRO_DATABASE__URL": url,
            "CARTEIRO_SECRETS__KEYS": new_key_line(db.ids, db.clock.wall()),
            **{environment_name("limits", key): "0" for key in VISITOR_LIMITS},
        }
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        with ExitStack() as stack:
            stays = stack.enter_context(_node(tmp_path / "stays", settings))
            product = await _stocked(http, stays, key)
            for n in range(KILLS):
                with _node(tmp_path / f"dies{n}", settings) as dies:
                    await _order(http, stays, dies, product, n, dice)
    assert await query(url, "select count(*) from orders") == [(KILLS,)]
    events = dict(await query(url, "select name, count(*) from events group by name"))
    assert (events["deal.created"], events["invoice.created"]) == (KILLS, KILLS)
    assert await query(url, "select stock from products") == [(1000 - KILLS,)]
    await postgres_server.drop(url)


def _node(folder: Path, settings: dict[str, str]) -> AbstractContextManager[Serving]:
    folder.mkdir()
    return serving_process(folder, **settings)


async def _stocked(http: aiohttp.ClientSession, node: Serving, key: str) -> str:
    """Create a store with a product; return the product."""
    ids, body = list[str](), dict[str, Any](hostname=HOST, name="Shop")
    for path in ("stores", "products"):
        url = f"{node.url}/api/{path}"
        async with http.post(url, json=body, headers={"X-API-Key": key}) as answer:
            ids.append((await answer.json())["id"])
        body = {"name": "Coffee", "price": 30, "stock": 1000, "storeId": ids[0]}
    return global_id("Product", ids[1])


async def _order(
    http: aiohttp.ClientSession, stays: Serving, dies: Serving, product: str, n: int,
    dice: random.Random,
) -> None:  # fmt: skip
    put = {"hostname": HOST, "productId": product, "quantity": 1}
    added, cart = await _send(http, stays, _ADD, put, "")
    assert "errors" not in added, added
    buyer = {"hostname": HOST, "email": "b@example.com", "name": "B", "idempotencyKey": f"k{n}"}

    async def kill() -> None:
        await asyncio.sleep(dice.uniform(0, LONGEST))
        dies.process.kill()

    answers = await asyncio.gather(
        _send(http, dies, _ORDER, buyer, cart), kill(), return_exceptions=True
    )
    again = await asyncio.gather(*(_send(http, stays, _ORDER, buyer, cart) for _ in range(2)))
    bodies = [answer[0] for answer in [*answers, *again] if isinstance(answer, tuple)]
    assert not any("errors" in body for body in bodies), bodies
    assert len({json.dumps(body["data"]["checkout"]["order"]) for body in bodies}) == 1, bodies


async def _send(
    http: aiohttp.ClientSession, node: Serving, query: str, given: dict[str, Any], cart: str
) -> tuple[Any, str]:
    """Return the body, and the token of the cart if the response sets one."""
    body = {"query": query, "variables": {"input": given}}
    headers = {"X-Cart-Session": cart} if cart else {}
    async with http.post(f"{node.url}/graphql", json=body, headers=headers) as answer:
        token = answer.cookies.get("cartSession")
        return await answer.json(), "" if token is None else token.value
