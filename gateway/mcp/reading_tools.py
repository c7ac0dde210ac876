"""The tools that read records: they call the operations of a resource that the REST door has."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from gateway.domain.catalogue import BY_PLURAL
from gateway.mcp import tool_schemas
from gateway.mcp.calls import Query, TooLong, call, reader, too_long
from gateway.mcp.results import BYTES, fitting, shortened, size_of
from gateway.mcp.tool import DATA, Call, Sent, Tool, path_of_record
from gateway.mcp.tool_schemas import ID, OBJECT, TEXT, Schema, one_of
from gateway.records import finding
from gateway.records.errors import Fault
from gateway.records.record import refusal
from gateway.rest.api_areas import reaches
from gateway.rest.body import members_of
from gateway.rest.scans import scan

PAGE: Final = 20
MOST: Final = 100
_LEFT_OUT: Schema = {"type": "string", "description": "What is not in this result, and why."}
_NAMES: Schema = {"type": "array", "items": TEXT, "description": "Only these fields."}
_LIST: Mapping[str, Schema] = {
    "type": TEXT, "data": {"type": "array", "items": OBJECT}, "total": {"type": "integer"},
    "nextCursor": TEXT, "leftOut": _LEFT_OUT,
}  # fmt: skip


async def describe(given: Call) -> dict[str, Any]:
    """Return the schemas of one resource from the OpenAPI document."""
    plural = given.text("type")
    path = f"/api/{plural}"
    sort = tool_schemas.parameter(path, "sort")
    await reader(given.request, path)
    of = {
        "record": tool_schemas.record_of(plural),
        "create": tool_schemas.body_of("POST", path),
        "update": tool_schemas.body_of("PATCH", f"{path}/{{id}}"),
        "filters": tool_schemas.filters_of(plural),
        "sort": sort["description"],
        "actions": {
            word: tool_schemas.body_of("POST", f"{path}/{{id}}/{word}") or {"type": "object"}
            for word in tool_schemas.verbs().get(plural, ())
        },
    }
    return {"type": plural, **{name: its for name, its in of.items() if its}}


async def search(given: Call) -> dict[str, Any]:
    """Find records by words, of one resource or of all."""
    words, plural = given.text("query").strip(), given.text("type")
    if not words:
        raise refusal([Fault("query", "required", "query must have a word.")])
    if plural:
        page = await _page(given, plural, {"search": words}, PAGE)
        return page | {"type": plural}
    inner, caller = await reader(given.request, "/api/me")
    kinds = [BY_PLURAL[one] for one in tool_schemas.searchable() if reaches(caller, one)]
    groups = await scan(inner, caller, "searched", finding.find, kinds, words)
    matches = [
        {"type": group.resource.plural, "record": members_of(record)}
        for group in groups
        for record in group.records
    ]
    left = [group.resource.plural for group in groups if group.more or group.cut]
    most = fitting(matches)
    content: dict[str, Any] = {"data": [_short(one) for one in matches[:most]]}
    if left or most < len(matches):
        content["leftOut"] = (
            f"{len(matches) - most} matches, and more of: {', '.join(left) or 'none'}. "
            "Search with a type for pages."
        )
    return content


async def list_records(given: Call) -> dict[str, Any]:
    """List a page of records."""
    plural, arguments = given.text("type"), given.arguments
    filters = dict(arguments.get("filters", {}))
    known = tool_schemas.filters_of(plural)
    given.sent = Sent({"properties": {"filters": {"properties": known}}}, arguments)
    faults = []
    for name, value in filters.items():
        if name not in known:
            message = f"There are: {', '.join(known)}."
            faults.append(Fault(f"filters.{name}"[:64], "unknown_filter", message))
        elif not isinstance(value, str | int | float | bool | Decimal):
            message = "Send a text, a number, true or false."
            faults.append(Fault(f"filters.{name}", "invalid_filter", message))
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
        answer = await call(given.request, "GET", path_of_record(given), query)
    except TooLong:
        raise too_long("record") from None
    shown, content = answer.body, dict[str, Any]()
    if size_of(shown) > BYTES and not query:
        shown, cut = shortened(shown)
        content["leftOut"] = f"The ends of: {', '.join(cut[:20])}. Get them with fields."
    return {"type": given.text("type"), "record": shown, "etag": answer.etag} | content


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
    content: dict[str, Any] = {"data": [_short(record) for record in records]}
    cut = [name for record in records if size_of(record) > BYTES for name in shortened(record)[1]]
    left = []
    if "nextCursor" in answer.body:
        content["nextCursor"] = answer.body["nextCursor"]
        why = f" (of {asked} asked for, about {BYTES} bytes fit)" if limit < asked else ""
        left.append(f"Records after these {len(records)}{why}: call again with nextCursor.")
    if cut:
        left.append(f"The ends of long values ({', '.join(sorted({*cut})[:10])}): use get.")
    content["total"] = answer.body["total"]
    return content | ({"leftOut": " ".join(left)} if left else {})


def _short(record: dict[str, Any]) -> dict[str, Any]:
    return shortened(record)[0] if size_of(record) > BYTES else record


def tools() -> tuple[Tool, ...]:
    """Return the tools."""
    return (
        Tool(
            "describe",
            "Describe a type",
            "The JSON Schemas of a type: its record, what create and update take, filters of list, "
            "sort keys and actions. Call it before the first create, update or filtered list.",
            arguments={"type": one_of(*tool_schemas.TYPES)},
            required=("type",),
            result={
                "type": TEXT,
                "record": OBJECT,
                "create": OBJECT,
                "update": OBJECT,
                "filters": OBJECT,
                "sort": TEXT,
                "actions": OBJECT,
            },
            effect="reads",
            run=describe,
        ),
        Tool(
            "search",
            "Search records",
            "Find records by words of their names, e-mails, titles or numbers, newest first; of "
            f"all types without `type`. {DATA}",
            arguments={"query": TEXT, "type": one_of(*tool_schemas.searchable())},
            required=("query",),
            result=_LIST,
            effect="reads",
            run=search,
        ),
        Tool(
            "list",
            "List records",
            "A page of the records of a type. `filters` are those that describe names. While there "
            f"is a nextCursor, call again with it as cursor and the same arguments. {DATA}",
            arguments={
                "type": one_of(*tool_schemas.TYPES),
                "filters": OBJECT,
                "sort": {"type": "string", "description": "Such as -createdAt; see describe."},
                "updatedSince": {"type": "string", "description": "A date or date-time."},
                "fields": _NAMES,
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "default": PAGE},
                "cursor": TEXT,
            },
            required=("type",),
            result=_LIST,
            effect="reads",
            run=list_records,
        ),
        Tool(
            "get",
            "Read a record",
            f"One record by its id, with its etag. {DATA}",
            arguments={"type": one_of(*tool_schemas.TYPES), "id": ID, "fields": _NAMES},
            required=("type", "id"),
            result={"type": TEXT, "record": OBJECT, "etag": TEXT, "leftOut": _LEFT_OUT},
            effect="reads",
            run=get,
        ),
    )
