"""Handles creates of many records with one request: each by itself, or all or none."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from aiohttp import web

from gateway.domain.catalogue import Create
from gateway.records import idempotency, record
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.idempotency import Once, Outcomes
from gateway.records.record import Draft, Record, check
from gateway.records.resource import Resource
from gateway.records.values.strictjson import InvalidJson, decode
from gateway.rest.auth import authenticate, charge
from gateway.rest.body import answer, ignored, keep, read_body, restore
from gateway.rest.document import describe
from gateway.rest.document.operations import Operation
from gateway.rest.errors import STATUS
from gateway.rest.params import once_of
from gateway.rest.preferences import is_strict, unasked
from gateway.server.app_keys import DB
from outbox.database.transaction import Database, Tx, brief

MOST = 100
CREATED = 201
_BEGUN = "begun"
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Batch:
    items: Sequence[Draft]
    atomic: bool
    strict: bool
    ignored: Sequence[str]


def batch(resource: Resource, unit: Create) -> Operation:
    """Return POST /api/{plural}/batch: 207 with the result of each item."""
    unit = brief(unit)

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        caller.must("write")
        body = await read_body(request)
        asked = _read(request, resource, body)
        charge(request, caller, len(asked.items) - 1)
        db = request.app[DB]
        use = once_of(caller, request, body)
        headers = ignored(Draft(ignored=[*asked.ignored], strict=asked.strict))
        if asked.atomic:

            def response(ids: Sequence[str]) -> web.Response:
                return answer({"results": [*map(_made, range(MOST), ids)]}, 207, headers)

            outcomes = Outcomes(response, keep, restore)
            return await idempotency.write(
                db, use, outcomes, _all, caller, asked.items, create=unit
            )
        results, replayed = await _each(db, caller, unit, asked.items, use)
        if replayed:
            headers["Idempotent-Replayed"] = "true"
        return answer({"results": results}, 207, headers)

    return describe.batch(resource, MOST)(handle)


def _read(request: web.Request, resource: Resource, body: bytes) -> _Batch:
    """Return the drafts of a body. Raises invalid_json or validation_error."""
    try:
        sent = decode(body)
    except InvalidJson as error:
        raise Refusal("invalid_json", str(error)) from None
    if not isinstance(sent, dict):
        raise Refusal("validation_error", "Send a JSON object as the body.")
    items, atomic = sent.get("items"), sent.get("atomic", False)
    faults = []
    if not isinstance(items, list) or not 1 <= len(items) <= MOST:
        faults.append(Fault("items", "wrong_size", f"Send an array of 1 to {MOST} items."))
    if not isinstance(atomic, bool):
        faults.append(Fault("atomic", "wrong_type", "Send true or false."))
    strict = is_strict(request)
    more = [name for name in sent if name not in ("items", "atomic")]
    more += unasked(request) if strict else ()
    Draft(faults=faults, ignored=more, strict=strict).must_hold()
    read = [_draft(resource, item, strict=strict) for item in items or ()]
    unknown = (name for draft in read for name in draft.ignored)
    return _Batch(read, atomic, strict, [*dict.fromkeys((*more, *unknown))])


def _draft(resource: Resource, item: Any, *, strict: bool) -> Draft:
    if not isinstance(item, dict):
        return Draft(unreadable=Refusal("validation_error", "Send a JSON object as the item."))
    draft = check(resource, item, from_json=True, creating=True)
    draft.strict = strict
    return draft


@brief
async def _all(tx: Tx, actor: Actor, items: Sequence[Draft], *, create: Create) -> list[str]:
    """Create all records; return their ids. Raises one refusal with the faults of all items."""
    ids, faults = list[str](), list[Fault]()
    for index, item in enumerate(items):
        try:
            ids.append((await create(tx, actor, item)).id)
        except Refusal as refusal:
            faults += _within(index, refusal)
    if faults:
        raise record.refusal(faults)
    return ids


def _within(index: int, refusal: Refusal) -> Sequence[Fault]:
    place = f"items[{index}]"
    if not refusal.faults:
        return [Fault(place, refusal.code, refusal.message)]
    return [replace(fault, field=f"{place}.{fault.field}") for fault in refusal.faults]


async def _each(
    db: Database, actor: Actor, unit: Create, items: Sequence[Draft], use: Once | None
) -> tuple[list[dict[str, Any]], bool]:
    """Create each record in a transaction of its own; return the results, and whether all repeat.

    With a key, a repeat returns what was made and tries the others again: they wrote nothing.
    """
    if use is not None:
        # Another body is refused before any of its items is written.
        await idempotency.write(db, use, Outcomes(str, str, str), _nothing)
    repeated = 0

    def restored(record_id: str) -> str:
        nonlocal repeated
        repeated += 1
        return record_id

    outcomes: Outcomes[Record, str] = Outcomes(lambda record: record.id, str, restored)
    results = []
    for index, item in enumerate(items):
        once = None if use is None else _of_item(use, index)
        try:
            record_id = await idempotency.write(db, once, outcomes, unit, actor, item)
        except Refusal as refusal:
            results.append(_refused(index, refusal))
        else:
            results.append(_made(index, record_id))
        await asyncio.sleep(0)
    return results, bool(repeated) and repeated == len(items)


async def _nothing(_: Tx) -> str:
    return _BEGUN


def _of_item(use: Once, index: int) -> Once:
    fingerprint = hashlib.sha256(use.fingerprint + b"%d" % index).digest()
    return replace(use, operation=f"{use.operation}#{index}", fingerprint=fingerprint)


def _made(index: int, record_id: str) -> dict[str, Any]:
    return {"index": index, "status": CREATED, "id": record_id}


def _refused(index: int, refusal: Refusal) -> dict[str, Any]:
    details = [
        {"field": fault.field, "code": fault.code, "message": fault.message}
        for fault in refusal.faults
    ]
    status = STATUS[refusal.code]
    return {
        "index": index, "status": status, "error": refusal.message, "code": refusal.code,
        "details": details,
    }  # fmt: skip
