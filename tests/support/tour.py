"""A tour of all resources for generated clients: its steps, and a client's figures.

A step is a call of one operation with what the document says of it; `$name` in its path and body
stands for an id that an earlier step saved. The clients are generated from the served document and
used as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.domain.catalogue import CATALOGUE, Entry
from gateway.rest.document.operations import path_of
from tests.support.document import DOCUMENT
from tests.support.site import PASSWORD

EMAIL = "maria@example.com"
REFERENCES = {
    "companyId": "company", "contactId": "contact", "dealId": "deal", "quoteId": "quote",
    "storeId": "store", "productId": "product", "relatedTo": "contact", "parentId": "category",
}  # fmt: skip
ORDER = ("company", "contact", "store", "deal", "quote")
"""Creates that others refer to; all others follow in the order of the catalogue."""
VERBS: tuple[tuple[str, str], ...] = (
    ("completeTask", "task"), ("reopenTask", "task"), ("sendQuote", "quote"),
    ("acceptQuote", "quote"), ("convertQuote", "quote"), ("payInvoice", "invoice"),
    ("cancelOrder", "order"),
)  # fmt: skip
FURTHER: tuple[tuple[str, str], ...] = (("rejectQuote", "sendQuote"), ("cancelQuote", ""))
"""Verbs of quotes that each need another quote, and the verb before."""

Step = dict[str, Any]


def steps() -> list[Step]:
    """Return the tour: create, read, list, change, the verbs, everything else, delete."""
    entries = sorted(CATALOGUE, key=_place)
    tour: list[Step] = [_create(e) for e in entries if e.create is not None]
    for entry in entries:
        tour += _reads_and_changes(entry)
    tour += _verbs()
    tour += _account()
    called = {step["operation"] for step in tour}
    tour += [
        call(name)
        for name, (path, method, _) in operations().items()
        if method == "get" and "{" not in path and name not in called | {"showDocument"}
    ]
    tour.append(call("listActivitiesByEntityId", path={"entityId": "$contact"}))
    for entry in reversed(entries):
        noun = entry.resource.noun
        if entry.resource.deletable:
            tour.append(call(f"delete{_title(noun)}", path={"id": f"${noun}"}))
    return tour


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
    for name, noun in VERBS:
        yield call(name, path={"id": f"${noun}"})
    for name, before in FURTHER:
        yield call("createQuote", saves="other quote")
        if before:
            yield call(before, path={"id": "$other quote"})
        yield call(name, path={"id": "$other quote"})
    yield call("createInvoice", saves="other invoice")
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
