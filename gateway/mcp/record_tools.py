"""The tools of records: they call the operations of a resource that the REST door has."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal

from aiohttp import web

from gateway.domain.accounts import agents
from gateway.domain.catalogue import BY_PLURAL
from gateway.mcp import schemas
from gateway.mcp.arguments import nearest
from gateway.mcp.calls import Answer, Query, TooLong, call, reader, too_long
from gateway.mcp.results import BYTES, fitting, shortened, size_of
from gateway.mcp.schemas import Schema
from gateway.mcp.tool import DATA, Call, Sent, Tool
from gateway.records import finding
from gateway.records.draft import refusal
from gateway.records.errors import Fault, Refusal
from gateway.rest.api_areas import reaches
from gateway.rest.record_json import view
from gateway.rest.scans import scan
from gateway.server.app_keys import DB
from outbox.ids import is_id

What = Literal["deletes", "replays"]
PAGE: Final = 20
MOST: Final = 100
_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_ID: Schema = {"type": "string", "description": "24 hexadecimal digits."}
_KEY: Schema = {
    "type": "string",
    "description": "Idempotency-Key: the same call with the same key is done once in 24 hours.",
}
_ETAG: Schema = {"type": "string", "description": "From get: refused if it changed since."}
_LEFT_OUT: Schema = {"type": "string", "description": "What is not in this result, and why."}
_NAMES: Schema = {"type": "array", "items": _TEXT, "description": "Only these fields."}


def _type(*allowed: str) -> Schema:
    return {"type": "string", "enum": list(allowed)}


async def describe(given: Call) -> dict[str, Any]:
    """Return the schemas of one resource from the OpenAPI document."""
    plural = given.text("type")
    path = f"/api/{plural}"
    sort = schemas.parameter(path, "sort")
    await reader(given.request, path)
    of = {
        "record": schemas.record_of(plural),
        "create": schemas.body_of("POST", path),
        "update": schemas.body_of("PATCH", f"{path}/{{id}}"),
        "filters": schemas.filters_of(plural),
        "sort": sort["description"],
        "actions": {
            word: schemas.body_of("POST", f"{path}/{{id}}/{word}") or {"type": "object"}
            for word in schemas.verbs().get(plural, ())
        },
    }
    return {"type": plural, **{name: its for name, its in of.items() if its}}


async def search(given: Call) -> dict[str, Any]:
    """Find records by words, of one resource or of all."""
    words, plural = given.text("query").strip(), given.text("type")
    if not words:
        raise refusal([Fault("query", "required", "query must have a word.")])
    if plural:
        found = await _page(given, plural, {"search": words}, PAGE)
        return found | {"type": plural}
    inner, caller = await reader(given.request, "/api/me")
    kinds = [BY_PLURAL[one] for one in schemas.searchable() if reaches(caller, one)]
    groups = await scan(inner, caller, "searched", finding.find, caller, kinds, words)
    matches = [
        {"type": group.resource.plural, "record": view(record).members}
        for group in groups
        for record in group.records
    ]
    left = [group.resource.plural for group in groups if group.more or group.cut]
    kept = fitting(matches)
    content: dict[str, Any] = {"data": [_short(one) for one in matches[:kept]]}
    if left or kept < len(matches):
        content["leftOut"] = (
            f"{len(matches) - kept} matches, and more of: {', '.join(left) or 'none'}. "
            "Search with a type for pages."
        )
    return content


async def list_records(given: Call) -> dict[str, Any]:
    """List a page of records."""
    plural, arguments = given.text("type"), given.arguments
    filters = dict(arguments.get("filters", {}))
    known = schemas.filters_of(plural)
    faults = [
        Fault(f"filters.{name}"[:64], "unknown_filter", _unknown(name, known))
        for name in filters
        if name not in known
    ]
    faults += [
        Fault(f"filters.{name}", "invalid_filter", "Send a text, a number, true or false.")
        for name, value in filters.items()
        if not isinstance(value, str | int | bool | Decimal) and name in known
    ]
    if faults:
        raise refusal(faults)
    given.sent = Sent({"properties": known}, filters)
    query: dict[str, Any] = dict(filters)
    for name in ("sort", "updatedSince", "fields", "cursor"):
        if name in arguments:
            query[name] = arguments[name]
    return {"type": plural} | await _page(given, plural, query, arguments.get("limit", PAGE))


async def get(given: Call) -> dict[str, Any]:
    """Read one record."""
    query = {name: given.arguments[name] for name in ("fields",) if name in given.arguments}
    try:
        answer = await call(given.request, "GET", _path(given), query)
    except TooLong:
        raise too_long("record") from None
    shown, content = answer.body, dict[str, Any]()
    if size_of(shown) > BYTES and not query:
        shown, cut = shortened(shown)
        content["leftOut"] = f"The ends of: {', '.join(cut[:20])}. Get them with fields."
    return {"type": given.text("type"), "record": shown, "etag": answer.etag} | content


async def create(given: Call) -> dict[str, Any]:
    """Create a record."""
    path = f"/api/{given.text('type')}"
    given.sent = Sent(schemas.body_of("POST", path) or {}, given.arguments["record"])
    return _written(
        given, await call(given.request, "POST", path, body=given.sent.value, once=once_of(given))
    )


async def update(given: Call) -> dict[str, Any]:
    """Change the sent fields of a record."""
    schema = schemas.body_of("PATCH", f"/api/{given.text('type')}/{{id}}")
    given.sent = Sent(schema or {}, given.arguments["record"])
    return _written(
        given,
        await call(given.request, "PATCH", _path(given), body=given.sent.value, etag=_tag(given)),
    )


async def delete(given: Call) -> dict[str, Any]:
    """Delete a record."""
    await must_be_allowed(given.request, _path(given), "deletes")
    answer = await call(given.request, "DELETE", _path(given), etag=_tag(given))
    return {"type": given.text("type"), "id": answer.body["id"], "deleted": True}


async def act(given: Call) -> dict[str, Any]:
    """Do what a resource has as a verb, such as to pay an invoice."""
    plural, word = given.text("type"), given.text("action")
    offered = schemas.verbs().get(plural, ())
    if word not in offered:
        near = nearest(word, offered)
        message = f"{plural} have: {', '.join(offered)}." + (f" Nearest: {near}." if near else "")
        raise refusal([Fault("action", "invalid_argument", message)])
    schema = schemas.body_of("POST", f"/api/{plural}/{{id}}/{word}")
    values = given.arguments.get("values", {})
    if values and schema is None:
        raise refusal([Fault("values", "unknown_field", f"{word} takes no values.")])
    given.sent = Sent(schema or {}, values)
    body = None if schema is None else values
    return _written(
        given,
        await call(given.request, "POST", f"{_path(given)}/{word}", body=body, once=once_of(given)),
    )


async def must_be_allowed(request: web.Request, path: str, what: What) -> None:
    """Raise forbidden when the account forbids this to programs."""
    _, caller = await reader(request, path)
    if not getattr(await request.app[DB].read(agents.allowed, caller.owner_id), what):
        text = f"This account forbids {what} by MCP; its owner can allow them on /console/keys."
        raise Refusal("forbidden", text)


def once_of(given: Call) -> str | None:
    """Return the Idempotency-Key of a call, if it has one."""
    key: str | None = given.arguments.get("idempotencyKey", given.key)
    return key


async def _page(given: Call, plural: str, query: Query, limit: int) -> dict[str, Any]:
    """Return a page of a list that fits into a result, and what it leaves out."""
    path, asked = f"/api/{plural}", limit
    while True:
        try:
            answer = await call(given.request, "GET", path, {**query, "limit": limit})
        except TooLong:
            if limit == 1:
                raise too_long("record") from None
            limit = max(limit // 4, 1)
            continue
        records = answer.body["data"]
        fit = fitting(records)
        if fit == len(records):
            break
        # Read again, so that the cursor is that of the last record shown.
        limit = fit
    content: dict[str, Any] = {"data": [_short(one) for one in records]}
    cut = [name for one in records for name in shortened(one)[1]] if _is_long(records) else []
    left = []
    if "nextCursor" in answer.body:
        content["nextCursor"] = answer.body["nextCursor"]
        why = f" (of {asked} asked for, about {BYTES} bytes fit)" if limit < asked else ""
        left.append(f"Records after these {len(records)}{why}: call again with nextCursor.")
    if cut:
        left.append(f"The ends of long values ({', '.join(sorted({*cut})[:10])}): use get.")
    content["total"] = answer.body["total"]
    return content | ({"leftOut": " ".join(left)} if left else {})


def _is_long(records: list[Any]) -> bool:
    return len(records) == 1 and size_of(records) > BYTES


def _short(record: dict[str, Any]) -> dict[str, Any]:
    return shortened(record)[0] if size_of(record) > BYTES else record


def _written(given: Call, answer: Answer) -> dict[str, Any]:
    """Return the result of a write; it says when it repeats the response of an earlier one."""
    content = {"type": given.text("type"), "record": answer.body, "etag": answer.etag}
    if "Idempotent-Replayed" in answer.headers:
        content["replayed"] = True
    return {name: value for name, value in content.items() if value is not None}


def _path(given: Call) -> str:
    """Return the path of the record of a call. Raises not_found for a malformed id."""
    record_id = given.text("id").strip()
    if not is_id(record_id):
        noun = BY_PLURAL[given.text("type")].noun
        raise Refusal("not_found", f"This {noun} does not exist; an id has 24 hexadecimal digits.")
    return f"/api/{given.text('type')}/{record_id}"


def _tag(given: Call) -> str | None:
    tag = given.arguments.get("etag")
    return None if tag is None else tag.strip().strip('"')


def _unknown(name: str, known: Mapping[str, Schema]) -> str:
    near = nearest(name, known)
    return f"There are: {', '.join(known)}." + (f" Nearest: {near}." if near else "")


_RECORD: Mapping[str, Schema] = {"type": _TEXT, "record": _OBJECT, "etag": _TEXT}
_WRITTEN: Mapping[str, Schema] = {**_RECORD, "replayed": {"type": "boolean"}}
_LIST: Mapping[str, Schema] = {
    "type": _TEXT, "data": {"type": "array", "items": _OBJECT}, "total": {"type": "integer"},
    "nextCursor": _TEXT, "leftOut": _LEFT_OUT,
}  # fmt: skip


def tools() -> tuple[Tool, ...]:
    """Return the tools of the catalogue's resources."""
    changed = schemas.types("PATCH", one=True)
    of = schemas.verbs()
    actions = tuple(dict.fromkeys(word for words in of.values() for word in words))
    by_type = "; ".join(f"{plural}: {', '.join(words)}" for plural, words in of.items())
    return (
        Tool(
            "describe", "Describe a type",
            "The JSON Schemas of a type: its record, what create and update take, filters of list, "
            "sort keys and actions. Call it before the first create, update or filtered list.",
            {"type": _type(*schemas.TYPES)}, ("type",),
            {
                "type": _TEXT, "record": _OBJECT, "create": _OBJECT, "update": _OBJECT,
                "filters": _OBJECT, "sort": _TEXT, "actions": _OBJECT,
            },
            "reads", describe,
        ),
        Tool(
            "search", "Search records",
            "Find records by words of their names, e-mails, titles or numbers, newest first; of "
            f"all types without `type`. {DATA}",
            {"query": _TEXT, "type": _type(*schemas.searchable())}, ("query",), _LIST,
            "reads", search,
        ),
        Tool(
            "list", "List records",
            "A page of the records of a type. `filters` are those that describe names. While there "
            f"is a nextCursor, call again with it as cursor and the same arguments. {DATA}",
            {
                "type": _type(*schemas.TYPES), "filters": _OBJECT,
                "sort": {"type": "string", "description": "Such as -createdAt; see describe."},
                "updatedSince": {"type": "string", "description": "A date or date-time."},
                "fields": _NAMES,
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": PAGE},
                "cursor": _TEXT,
            },
            ("type",), _LIST, "reads", list_records,
        ),
        Tool(
            "get", "Read a record", f"One record by its id, with its etag. {DATA}",
            {"type": _type(*schemas.TYPES), "id": _ID, "fields": _NAMES}, ("type", "id"),
            {**_RECORD, "leftOut": _LEFT_OUT}, "reads", get,
        ),
        Tool(
            "create", "Create a record",
            "Create a record; describe has its fields. Amounts are in BRL. Events go to webhooks.",
            {
                "type": _type(*schemas.types("POST")), "record": _OBJECT, "idempotencyKey": _KEY,
            },
            ("type", "record"), _WRITTEN, "adds", create, "write", repeatable=False,
        ),
        Tool(
            "update", "Change a record",
            "Change the fields of `record`; null clears a field, others stay as they are.",
            {"type": _type(*changed), "id": _ID, "record": _OBJECT, "etag": _ETAG},
            ("type", "id", "record"), _WRITTEN, "changes", update, "write",
        ),
        Tool(
            "delete", "Delete a record",
            "Delete a record permanently. Ask the user first. An account can forbid it.",
            {"type": _type(*schemas.types("DELETE", one=True)), "id": _ID, "etag": _ETAG},
            ("type", "id"), {"type": _TEXT, "id": _TEXT, "deleted": {"type": "boolean"}},
            "destroys", delete, "write",
        ),
        Tool(
            "act", "Do an action on a record",
            f"Actions by type: {by_type}. `values` as describe says. Ask the user first: most "
            "cannot be undone.",
            {
                "type": _type(*of), "id": _ID, "action": _type(*actions), "values": _OBJECT,
                "idempotencyKey": _KEY,
            },
            ("type", "id", "action"), _WRITTEN, "changes", act, "write", repeatable=False,
        ),
    )  # fmt: skip
