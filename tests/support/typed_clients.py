"""Clients that others make from the schema and from the documents of storefront-operations.md."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.graphql.schema import sdl
from tests.architecture.tree import ROOT
from tests.support.node import FOLDER, package
from tests.support.requirements import need

APOLLO = "@apollo/client"
CODEGEN = ROOT / ".venv" / "codegen" / "bin"
"""The environment of generators; ariadne-codegen needs another graphql-core than we do."""
_BLOCK = re.compile(r"^```graphql\n(.*?)^```", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^(?:query|mutation) (\w+)", re.MULTILINE)
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
    for text in _BLOCK.findall(page):
        [name] = _NAME.findall(text)
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


async def apollo(origin: str, hostname: str, folder: Path) -> dict[str, Any]:
    """Buy with Apollo Client; return what it saw."""
    node = need("node")
    package(APOLLO)
    file = folder / "documents.json"
    file.write_text(json.dumps(documents()), "utf-8")
    script = FOLDER / "apollo" / "shop.mjs"
    return await _told([node, str(script), origin, hostname, str(file)], FOLDER)


async def ariadne(origin: str, hostname: str, folder: Path) -> dict[str, Any]:
    """Generate a client with ariadne-codegen and buy with it; return what it saw."""
    command = codegen("ariadne-codegen")
    write(folder)
    (folder / "schema.graphql").write_text(sdl(), "utf-8")
    (folder / "pyproject.toml").write_text(CONFIG)
    await _run([command], folder)
    return await _told([codegen("python"), "-c", BUY, origin, hostname], folder)


def codegen(program: str) -> str:
    """Return a program of the environment of generators, or skip and name it."""
    command = CODEGEN / program
    if not command.exists():
        pytest.skip(f"needs {program}: make test installs it into .venv/codegen")
    return str(command)


async def _told(words: list[str], folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(await _run(words, folder))
    return told


async def _run(words: list[str], folder: Path) -> str:
    """Run a program in a thread, because the server may run on this loop; return its output."""
    done = await asyncio.to_thread(
        subprocess.run, words, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
