"""Clients that generators make from the served OpenAPI document, unmodified, tour all resources."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE, Entry
from gateway.rest.document.operations import path_of
from gateway.rest.routes import VERBS
from outbox.database.transaction import Database
from tests.docs.receivers import STRICT
from tests.support import tour_client
from tests.support.document import DOCUMENT
from tests.support.generators import TSC, codegen, run
from tests.support.node import FOLDER, package
from tests.support.orders import placed, product
from tests.support.requirements import need
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import open_shop
from tests.support.site import PASSWORD, serving
from tests.support.stocked import stock

# The document does not depend on the engine, and the clients are slow.
pytestmark = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)

EMAIL = "maria@example.com"
REFERENCES = {
    "companyId": "company", "contactId": "contact", "dealId": "deal", "quoteId": "quote",
    "storeId": "store", "productId": "product", "relatedTo": "contact", "parentId": "category",
}  # fmt: skip
ORDER = ("company", "contact", "store", "deal", "quote")
"""Creates that others refer to; all others follow in the order of the catalogue."""
STEPS: tuple[tuple[str, str], ...] = (
    ("completeTask", "task"), ("reopenTask", "task"), ("sendQuote", "quote"),
    ("acceptQuote", "quote"), ("convertQuote", "quote"), ("payInvoice", "invoice"),
    ("cancelOrder", "order"),
)  # fmt: skip
FURTHER: tuple[tuple[str, str], ...] = (("rejectQuote", "sendQuote"), ("cancelQuote", ""))
"""Verbs of quotes that each need another quote, and the verb before."""

WITHOUT = {"sendInvoice", "uploadProductImage"}
"""Verbs that the tour leaves out: one needs a mail server, the other sends a file."""

Step = dict[str, Any]


def steps() -> list[Step]:
    """Return the tour: create, read, list, change, the verbs, everything else, delete."""
    entries = sorted(CATALOGUE, key=_place)
    found: list[Step] = [_create(e) for e in entries if e.create is not None]
    for entry in entries:
        found += _reads_and_changes(entry)
    found += _verbs()
    found += _account()
    called = {step["operation"] for step in found}
    found += [
        call(name)
        for name, (path, method, _) in operations().items()
        if method == "get" and "{" not in path and name not in called | {"showDocument"}
    ]
    found.append(call("listActivitiesByEntityId", path={"entityId": "$contact"}))
    for entry in reversed(entries):
        noun = entry.resource.noun
        if entry.resource.deletable:
            found.append(call(f"delete{_title(noun)}", path={"id": f"${noun}"}))
    return found


def call(
    name: str, *, path: Mapping[str, str] | None = None, body: Any = None, saves: str = "",
    by: str = "key", query: Mapping[str, Any] | None = None, status: int = 0,
) -> Step:  # fmt: skip
    """Return a step: the operation, its arguments, and what the document says of its response."""
    _, _, entry = operations()[name]
    status = status or min(int(one) for one in entry["responses"] if one.startswith("2"))
    assert "requestBody" not in entry or "application/json" in entry["requestBody"]["content"]
    media = entry["responses"][str(status)].get("content", {}).get("application/json", {})
    schema = media.get("schema", {})
    shown = schema.get("anyOf", [schema])[0]
    sent = entry.get("requestBody", {}).get("content", {}).get("application/json", {})
    if body is None and sent:
        body = _with_references(sent["example"])
    return {
        "operation": name, "tag": entry["tags"][0], "path": dict(path or {}), "by": by,
        "query": dict(query or {}), "body": body, "saves": saves, "status": status,
        "model": shown.get("$ref", "").rpartition("/")[2],
        "takes": sent.get("schema", {}).get("$ref", "").rpartition("/")[2],
    }  # fmt: skip


def _create(entry: Entry) -> Step:
    noun = entry.resource.noun
    step = call(f"create{_title(noun)}", saves=noun)
    if noun == "category":
        step["body"].pop("parentId", None)
    return step


def _reads_and_changes(entry: Entry) -> Iterator[Step]:
    resource, title = entry.resource, _title(entry.resource.noun)
    one = {"id": f"${resource.noun}"}
    plural = "".join(word.capitalize() for word in resource.plural.split("-"))
    yield call(f"list{plural}", query={"limit": 2})
    if entry.create is not None:
        # Some of them refuse a second record with the same value; the response tells.
        yield call(f"batch{plural}", body={"items": [_create(entry)["body"]]})
    if resource.noun == "contact":
        yield call("upsertContact")
    names = _parameters(path_of(resource), "include")
    for query in ({}, {"include": names} if names else {}):
        yield call(f"get{title}", path=one, query=query)
    if entry.change is not None:
        for way in ("update", "patch"):
            yield call(f"{way}{title}", path=one)


def _verbs() -> Iterator[Step]:
    for name, noun in STEPS:
        yield call(name, path={"id": f"${noun}"})
    for name, before in FURTHER:
        yield call("createQuote", saves="other quote")
        if before:
            yield call(before, path={"id": "$other quote"})
        yield call(name, path={"id": "$other quote"})
    yield call("createInvoice", saves="other invoice")
    for title, noun in (("Quote", "quote"), ("Invoice", "other invoice")):
        yield call(f"link{title}", path={"id": f"${noun}"})
        yield call(f"endLinksOf{title}", path={"id": f"${noun}"})
    for name in ("listStoreHostnames", "checkStoreHostnames"):
        yield call(name, path={"id": "$store"})
    yield call("cancelInvoice", path={"id": "$other invoice"})
    yield call("createContact", body={"name": "Eva", "email": "eva@example.com"}, saves="eva")
    for noun, title in (("eva", "Contact"), ("other client", "Client")):
        yield call(f"export{title}Data", path={"id": f"${noun}"})
        yield call(f"erase{title}", path={"id": f"${noun}"}, saves="erasure", status=202)
    yield call("getErasure", path={"id": "$erasure"})
    yield call("cancelOrders", body={"ids": ["$other order"], "reason": "Never paid"})


def _account() -> Iterator[Step]:
    yield call("createToken", body={"email": EMAIL, "password": PASSWORD}, saves="token")
    yield call("createKey", by="token", body={"name": "Another"}, saves="key")
    yield call("listKeys", by="token")
    yield call("deleteKey", by="token", path={"id": "$key"})
    yield call("patchMe", body={"name": "Maria"})
    yield call("deleteToken", by="token")
    yield call("updatePipeline")


def operations() -> dict[str, tuple[str, str, Any]]:
    """Return path, method and entry of each operation by its id."""
    return {
        entry["operationId"]: (path, method, entry)
        for path, item in DOCUMENT["paths"].items()
        for method, entry in item.items()
    }


def _parameters(path: str, name: str) -> str:
    """Return the example of a parameter of a list."""
    found = [
        p["example"] for p in DOCUMENT["paths"][path]["get"]["parameters"] if p["name"] == name
    ]
    return str(found[0]) if found else ""


def _with_references(example: Any) -> Any:
    body = dict(example)
    for name, noun in REFERENCES.items():
        if name in body:
            body[name] = f"${noun}"
    if "contactIds" in body:
        body["contactIds"] = ["$contact"]
    if "relatedType" in body:
        body["relatedType"] = "contact"
    return body


def _place(entry: Entry) -> int:
    noun = entry.resource.noun
    return ORDER.index(noun) if noun in ORDER else len(ORDER)


def _title(noun: str) -> str:
    return "".join(word.capitalize() for word in re.split(r"\W", noun))


MODELS = 450
"""At most so many; an error model for each operation were 2,000."""


@pytest.fixture
async def trip(db: Database) -> AsyncIterator[dict[str, Any]]:
    """The tour and its server, on which a visitor has ordered, signed up and rated."""
    async with serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
        beans = await product(shop.owner)
        one, other = [await placed(shop, {beans: 1}) for _ in range(2)]
        await site.user(EMAIL)
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
            "steps": steps(),
        }  # fmt: skip
        await shop.close()


async def test_the_tour_calls_every_operation_of_records(db_url: str) -> None:
    called = {step["operation"] for step in steps()}
    wanted = {
        name
        for name, (path, method, _) in operations().items()
        for entry in CATALOGUE
        if path in (f"/api/{entry.resource.plural}", f"/api/{entry.resource.plural}/{{id}}")
    }
    wanted |= {operation.name for _, _, operation in VERBS}
    assert wanted - called == WITHOUT


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
