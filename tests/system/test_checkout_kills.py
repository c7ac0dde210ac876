"""A node is killed in the middle of a checkout that two nodes take."""

from __future__ import annotations

import asyncio
import random
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.domain.accounts import api_keys, users
from gateway.graphql.ids import global_id
from gateway.server.config import environment_name
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Row, Tx
from outbox.ids import Ids
from outbox.webhooks.secrets import new_key_line
from tests.support.databases import PostgresServer
from tests.support.process import Serving, serving_process
from tests.support.rest import VISITOR_LIMITS

HOST = "shop.example"
LONGEST = 0.12
"""Seconds after which a node is killed, at most: about as long as a checkout takes."""
_ADD = """mutation ($input: ShoppingCartAddProductMutationInput!) {
  shoppingCartAddProduct(input: $input) { shoppingCart { totalQuantity } } }"""
_ORDER = """mutation ($input: CheckoutMutationInput!) {
  checkout(input: $input) { order { number accessToken } } }"""
_SOLD = "select count(*) as n from orders"
_EVENTS = "select name, count(*) as n from events group by name"


async def run_kills(url: str, rounds: int, seed: int) -> list[str]:
    """Order `rounds` carts on two nodes that are killed in turn; return what went wrong."""
    dice = random.Random(seed)
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    try:
        with tempfile.TemporaryDirectory(prefix="carteiro-checkouts-") as home:
            return await _run(db, url, Path(home), rounds, dice)
    finally:
        await db.close()


async def _run(db: Database, url: str, home: Path, rounds: int, dice: random.Random) -> list[str]:
    owner = await db.write(users.add, email="o@example.com", name="Owner", password_hash="-")
    key = api_keys.make(db.ids)
    scopes = ("read", "write")
    await db.write(
        api_keys.add, owner_id=owner, name="test", text=key, scopes=scopes, expires_at=None
    )  # fmt: skip
    settings = {
        "CARTEIRO_DATABASE__URL": url,
        "CARTEIRO_SECRETS__KEYS": new_key_line(db.ids, db.clock.wall()),
        **{environment_name("limits", key): "0" for key in VISITOR_LIMITS},
    }
    wrong: list[str] = []
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        with ExitStack() as stack:
            stays = stack.enter_context(_node(home / "stays", settings))
            product = await _shop(http, stays, key)
            for n in range(rounds):
                with _node(home / f"dies{n}", settings) as dies:
                    wrong += await _round(http, stays, dies, product, n, dice)
    [orders] = await db.read(_rows, _SOLD)
    if orders["n"] != rounds:
        wrong.append(f"{orders['n']} orders of {rounds} carts")
    events = {row["name"]: row["n"] for row in await db.read(_rows, _EVENTS)}
    for name in ("deal.created", "invoice.created"):
        if events.get(name) != rounds:
            wrong.append(f"{events.get(name)} {name} of {rounds} orders")
    [stock] = await db.read(_rows, "select stock from products")
    if stock["stock"] != 1000 - rounds:
        wrong.append(f"stock {stock['stock']} after {rounds} orders")
    return wrong


def _node(folder: Path, settings: dict[str, str]) -> Any:
    folder.mkdir()
    return serving_process(folder, **settings)


async def _shop(http: aiohttp.ClientSession, node: Serving, key: str) -> str:
    ids = []
    body: dict[str, Any] = {"hostname": HOST, "name": "Shop"}
    for path in ("stores", "products"):
        url = f"http://127.0.0.1:{node.port}/api/{path}"
        async with http.post(url, json=body, headers={"X-API-Key": key}) as answer:
            ids.append((await answer.json())["id"])
        body = {"name": "Coffee", "price": 30, "stock": 1000, "storeId": ids[0]}
    return global_id("Product", ids[1])


async def _round(
    http: aiohttp.ClientSession, stays: Serving, dies: Serving, product: str, n: int,
    dice: random.Random,
) -> list[str]:  # fmt: skip
    """Fill a cart, order it on both nodes while one dies, and order it again on the other."""
    put = {"hostname": HOST, "productId": product, "quantity": 1}
    added, cart = await _sent(http, stays, _ADD, put, "")
    if "errors" in added:
        return [str(added)]
    buyer = {"hostname": HOST, "email": "b@example.com", "name": "B", "idempotencyKey": f"k{n}"}

    async def kill() -> None:
        await asyncio.sleep(dice.uniform(0, LONGEST))
        dies.process.kill()

    answers = await asyncio.gather(
        _send(http, dies, _ORDER, buyer, cart), kill(), return_exceptions=True
    )
    again = await asyncio.gather(*(_send(http, stays, _ORDER, buyer, cart) for _ in range(2)))
    bodies = [answer for answer in [*answers, *again] if isinstance(answer, dict)]
    refused = [body["errors"] for body in bodies if "errors" in body]
    if refused:
        return [f"round {n}: {refused}"]
    made = [body["data"]["checkout"]["order"] for body in bodies]
    if len({order["number"] for order in made}) != 1:
        return [f"round {n}: {made}"]
    if len({order["accessToken"] for order in made}) != 1:
        return [f"round {n}: several tokens of one order"]
    return []


async def _send(
    http: aiohttp.ClientSession, node: Serving, query: str, given: dict[str, Any], cart: str
) -> Any:
    return (await _sent(http, node, query, given, cart))[0]


async def _sent(
    http: aiohttp.ClientSession, node: Serving, query: str, given: dict[str, Any], cart: str
) -> tuple[Any, str]:
    """Return the body, and the token of the cart if the response sets one."""
    body = {"query": query, "variables": {"input": given}}
    url = f"http://127.0.0.1:{node.port}/graphql"
    headers = {"X-Cart-Session": cart} if cart else {}
    async with http.post(url, json=body, headers=headers) as answer:
        token = answer.cookies.get("cartSession")
        return await answer.json(), "" if token is None else token.value


async def _rows(tx: Tx, sql: str) -> list[Row]:
    return await tx.all(sql)


SEED = 80261

pytestmark = [pytest.mark.proof, pytest.mark.timeout(240)]


async def test_a_killed_node_orders_a_cart_once(postgres_server: PostgresServer) -> None:
    url = await postgres_server.fresh()
    assert await run_kills(url, 4, SEED) == []
    await postgres_server.drop(url)
