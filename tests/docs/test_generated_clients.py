"""Clients that generators make from the served OpenAPI document, unmodified, tour all resources."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE
from gateway.rest.routes import VERBS
from outbox.database.transaction import Database
from tests.docs.receivers import STRICT, run
from tests.support import tour, tour_client
from tests.support.generated_client import TSC
from tests.support.node import FOLDER, package
from tests.support.orders import placed, product
from tests.support.requirements import need
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import open_shop
from tests.support.site import serving
from tests.support.stocked import stock
from tests.support.typed_clients import codegen

# The document does not depend on the engine, and the clients are slow.
pytestmark = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

MODELS = 320
"""At most so many; an error model for each operation were 2,000."""


@pytest.fixture
async def trip(db: Database) -> AsyncIterator[dict[str, Any]]:
    """The tour and its server, on which a visitor has ordered, signed up and rated."""
    async with serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        beans = await product(shop.owner)
        one, other = [await placed(shop, {beans: 1}) for _ in range(2)]
        await site.user(tour.EMAIL)
        last = await stock(db, shop.owner.user_id, 1)
        # Another person: the erasure of one may not take the records that the tour deletes.
        more = await stock(db, shop.owner.user_id, 1, first=1, email="rui@example.com")
        yield {
            "origin": site.url,
            "key": shop.owner.headers["X-API-Key"],
            "saved": {
                "order": one["id"], "other order": other["id"], "review": last["reviews"],
                "client": last["customers"], "other client": more["customers"],
            },
            "steps": tour.steps(),
        }  # fmt: skip
        await shop.close()


async def test_the_tour_calls_every_operation_of_records(db_url: str) -> None:
    called = {step["operation"] for step in tour.steps()}
    operations = tour.operations()
    wanted = {
        name
        for name, (path, method, _) in operations.items()
        for entry in CATALOGUE
        if path in (f"/api/{entry.resource.plural}", f"/api/{entry.resource.plural}/{{id}}")
    }
    wanted |= {operation.name for _, _, operation in VERBS}
    assert wanted - called == set()


async def test_a_client_of_openapi_python_client_tours_all_resources(
    trip: dict[str, Any], tmp_path: Path
) -> None:
    generator = codegen("openapi-python-client")
    said = await made(
        [generator, "generate", "--url", f"{trip['origin']}/api/openapi.json",
         "--meta", "none", "--output-path", "carteiro_client", "--fail-on-warning"],
        tmp_path,
    )  # fmt: skip
    assert not re.search("warning|error", said, re.IGNORECASE), said
    shutil.copy(tour_client.__file__, tmp_path)
    told = json.loads(await made([codegen("python"), "tour_client.py"], tmp_path, trip))
    assert told["calls"] == len(trip["steps"])
    assert told["models"] <= MODELS


async def test_a_client_of_openapi_ts_compiles_strictly_and_tours_all_resources(
    trip: dict[str, Any], tmp_path: Path
) -> None:
    node = need("node")
    generator = package("@hey-api/openapi-ts") / "bin" / "run.js"
    said = await made(
        [node, str(generator), "-i", f"{trip['origin']}/api/openapi.json", "-o", "client",
         "-c", "@hey-api/client-fetch", "--no-log-file"],
        tmp_path,
    )  # fmt: skip
    assert not re.search("warning|error|unsupported", said, re.IGNORECASE), said
    shutil.copy(FOLDER / "tour" / "tour.ts", tmp_path)
    await made([node, str(TSC), *STRICT, "--outDir", "built", "tour.ts"], tmp_path)
    told = json.loads(await made([node, "built/tour.js"], tmp_path, trip))
    assert told["calls"] == len(trip["steps"])
    assert told["seen"] == ["Bruno", "Acme Ltda", "not_found", "function"]


async def made(words: Sequence[str], folder: Path, trip: dict[str, Any] | None = None) -> str:
    """Run a program in a thread, because the server runs on this loop; return what it said."""
    return await asyncio.to_thread(run, words, folder, json.dumps(trip) if trip else "")
