"""The documents of storefront-operations.md in generated clients and in Apollo Client."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from outbox.database.transaction import Database
from tests.support.carts import sell
from tests.support.generated_client import compiled_alone, generate
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Shop, open_shop
from tests.support.site import serving
from tests.support.typed_clients import apollo, ariadne, documents, write

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
    told = await apollo(shop.api.site.url, shop.hostname, tmp_path)
    # It sends a hash once, learns that hashes are not known here, and sends documents from then on.
    assert told == {**SEEN, "sent": ["hash", "document", "document"], "later": ["document"]}


async def test_a_client_of_ariadne_codegen_buys(shop: Shop, tmp_path: Path) -> None:
    assert await ariadne(shop.api.site.url, shop.hostname, tmp_path) == SEEN


async def test_graphql_codegen_makes_types_of_all_documents(shop: Shop, tmp_path: Path) -> None:
    made = await generate(shop.api.site.url, tmp_path, write(tmp_path))
    assert made["documents"] == len(documents())
    await compiled_alone(tmp_path)


def test_no_operation_is_called_like_a_file_that_a_generator_writes() -> None:
    files = {"client", "enums", "exceptions", "fragments", "input_types", "scalars", "base_model",
             "base_operation", "async_base_client", "base_client"}  # fmt: skip
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in documents()}
    assert names & files == set()
