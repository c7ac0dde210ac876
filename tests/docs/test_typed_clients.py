"""The documents of storefront-operations.md in generated clients and in Apollo Client."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.graphql.schema import sdl
from outbox.database.transaction import Database
from tests.architecture.tree import ROOT
from tests.support.carts import sell
from tests.support.generators import codegen, compiled, generate, run, told
from tests.support.node import FOLDER, package
from tests.support.requirements import need
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving

BLOCK = re.compile(r"^```graphql\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"^(?:query|mutation) (\w+)", re.MULTILINE)
CONFIG = """
[tool.ariadne-codegen]
schema_path = "schema.graphql"
queries_path = "documents"
target_package_name = "shop_client"
"""
BUY = """
import asyncio, json, sys
from shop_client import CheckoutMutationInput, Client, ShoppingCartAddProductMutationInput

async def main(origin: str, hostname: str) -> None:
    async with Client(url=origin + "/graphql") as client:
        shelf = await client.list_products(hostname=hostname)
        product = shelf.products.nodes[0]
        added = await client.shopping_cart_add_product(
            ShoppingCartAddProductMutationInput(
                hostname=hostname, productId=product.id, quantity=2
            )
        )
        done = await client.checkout(
            CheckoutMutationInput(hostname=hostname, email="maria@example.com", name="Maria")
        )
        order = done.checkout.order
        seen = await client.get_order(
            hostname=hostname, number=order.number, access_token=order.access_token
        )
        cart = added.shopping_cart_add_product.shopping_cart
        print(json.dumps({
            "title": product.title, "cart": cart.total_price, "number": order.number,
            "total": order.total, "status": seen.order.status,
        }))

asyncio.run(main(*sys.argv[1:]))
"""


def documents() -> Mapping[str, str]:
    """Return the documents of the page by the names of their operations."""
    page = (ROOT / "docs/reference/storefront-operations.md").read_text("utf-8")
    found: dict[str, str] = {}
    for text in BLOCK.findall(page):
        [name] = NAME.findall(text)
        assert name not in found, f"two operations are called {name}"
        found[name] = text
    return found


def write(folder: Path) -> Path:
    """Write the documents into files of a new folder, and return it."""
    into = folder / "documents"
    into.mkdir()
    for name, text in documents().items():
        (into / f"{name}.graphql").write_text(text, "utf-8")
    return into


SEEN: dict[str, Any] = {
    "title": "Beans", "cart": 17980, "number": "ORD-000001", "total": 17980, "status": "pending",
}  # fmt: skip


@pytest.fixture
async def shop(db: Database) -> AsyncIterator[Shop]:
    async with serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        await sell(shop, 89.9, stock=5, name="Beans")
        yield shop
        await shop.close()


async def test_apollo_client_buys_and_does_without_persisted_queries(
    shop: Shop, tmp_path: Path
) -> None:
    package("@apollo/client")
    file, script = tmp_path / "documents.json", FOLDER / "apollo" / "shop.mjs"
    file.write_text(json.dumps(documents()), "utf-8")
    words = (need("node"), script, shop.api.site.url, shop.hostname, file)
    seen = await told(words, FOLDER)
    # It sends a hash once, learns that hashes are not known here, and sends documents from then on.
    assert seen == {**SEEN, "sent": ["hash", "document", "document"], "later": ["document"]}


async def test_a_client_of_ariadne_codegen_buys(shop: Shop, tmp_path: Path) -> None:
    command = codegen("ariadne-codegen")
    write(tmp_path)
    (tmp_path / "schema.graphql").write_text(sdl(), "utf-8")
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    await asyncio.to_thread(run, [command], tmp_path)
    words = (codegen("python"), "-c", BUY, shop.api.site.url, shop.hostname)
    assert await told(words, tmp_path) == SEEN


async def test_graphql_codegen_makes_types_of_all_documents(shop: Shop, tmp_path: Path) -> None:
    made = await generate(shop.api.site.url, tmp_path, write(tmp_path))
    assert made["documents"] == len(documents())
    await compiled(tmp_path)


def test_no_operation_is_called_like_a_file_that_a_generator_writes() -> None:
    files = {"client", "enums", "exceptions", "fragments", "input_types", "scalars", "base_model",
             "base_operation", "async_base_client", "base_client"}  # fmt: skip
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in documents()}
    assert names & files == set()
