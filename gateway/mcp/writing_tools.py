"""The tools that write records: they call the operations of a resource that the REST door has."""

from collections.abc import Mapping
from typing import Any, Literal

from aiohttp import web

from gateway.domain.accounts import agents
from gateway.mcp import tool_schemas
from gateway.mcp.calls import call, reader
from gateway.mcp.tool import Call, Sent, Tool, path_of_record
from gateway.mcp.tool_arguments import nearest
from gateway.mcp.tool_schemas import ID, KEY, OBJECT, TEXT, Schema, one_of
from gateway.records.errors import Fault, Refusal
from gateway.records.record import refusal
from gateway.server.app_keys import DB

What = Literal["deletes", "replays"]
_ETAG: Schema = {"type": "string", "description": "From get: refused if it changed since."}
_WRITTEN: Mapping[str, Schema] = {
    "type": TEXT, "record": OBJECT, "etag": TEXT, "replayed": {"type": "boolean"},
}  # fmt: skip


async def create(given: Call) -> dict[str, Any]:
    """Create a record."""
    path = f"/api/{given.text('type')}"
    given.sent = Sent(tool_schemas.body_of("POST", path) or {}, given.arguments["record"])
    return await _write(given, "POST", path, given.sent.value)


async def update(given: Call) -> dict[str, Any]:
    """Change the sent fields of a record."""
    schema = tool_schemas.body_of("PATCH", f"/api/{given.text('type')}/{{id}}")
    given.sent = Sent(schema or {}, given.arguments["record"])
    return await _write(given, "PATCH", path_of_record(given), given.sent.value)


async def delete(given: Call) -> dict[str, Any]:
    """Delete a record."""
    path = path_of_record(given)
    await must_be_allowed(given.request, path, "deletes")
    answer = await call(given.request, "DELETE", path, etag=_tag(given))
    return {"type": given.text("type"), "id": answer.body["id"], "deleted": True}


async def act(given: Call) -> dict[str, Any]:
    """Do what a resource has as a verb, such as to pay an invoice."""
    plural, word = given.text("type"), given.text("action")
    offered = tool_schemas.verbs().get(plural, ())
    if word not in offered:
        near = nearest(word, offered)
        message = f"{plural} have: {', '.join(offered)}." + (f" Nearest: {near}." if near else "")
        raise refusal([Fault("action", "invalid_argument", message)])
    schema = tool_schemas.body_of("POST", f"/api/{plural}/{{id}}/{word}")
    values = given.arguments.get("values", {})
    if values and schema is None:
        raise refusal([Fault("values", "unknown_field", f"{word} takes no values.")])
    given.sent = Sent(schema or {}, values)
    path = f"{path_of_record(given)}/{word}"
    return await _write(given, "POST", path, None if schema is None else values)


async def must_be_allowed(request: web.Request, path: str, what: What) -> None:
    """Raise forbidden when the account forbids this to programs."""
    _, caller = await reader(request, path)
    if not getattr(await request.app[DB].read(agents.allowed, caller.owner_id), what):
        text = f"This account forbids {what} by MCP; its owner can allow them on /console/keys."
        raise Refusal("forbidden", text)


async def _write(given: Call, method: str, path: str, body: Any) -> dict[str, Any]:
    """Return the result of a write; it says when it repeats the response of an earlier one."""
    answer = await call(given.request, method, path, body=body, etag=_tag(given), once=given.once)
    content = {"type": given.text("type"), "record": answer.body, "etag": answer.etag}
    if "Idempotent-Replayed" in answer.headers:
        content["replayed"] = True
    return {name: value for name, value in content.items() if value is not None}


def _tag(given: Call) -> str | None:
    tag = given.arguments.get("etag")
    return None if tag is None else tag.strip().strip('"')


def tools() -> tuple[Tool, ...]:
    """Return the tools."""
    changed = tool_schemas.types("PATCH", one=True)
    of = tool_schemas.verbs()
    actions = tuple(dict.fromkeys(word for words in of.values() for word in words))
    by_type = "; ".join(f"{plural}: {', '.join(words)}" for plural, words in of.items())
    return (
        Tool(
            "create",
            "Create a record",
            "Create a record; describe has its fields. Amounts are in BRL. Events go to webhooks.",
            arguments={
                "type": one_of(*tool_schemas.types("POST")),
                "record": OBJECT,
                "idempotencyKey": KEY,
            },
            required=("type", "record"),
            result=_WRITTEN,
            effect="adds",
            run=create,
            scope="write",
            repeatable=False,
        ),
        Tool(
            "update",
            "Change a record",
            "Change the fields of `record`; null clears a field, others stay as they are.",
            arguments={"type": one_of(*changed), "id": ID, "record": OBJECT, "etag": _ETAG},
            required=("type", "id", "record"),
            result=_WRITTEN,
            effect="changes",
            run=update,
            scope="write",
        ),
        Tool(
            "delete",
            "Delete a record",
            "Delete a record permanently. Ask the user first. An account can forbid it.",
            arguments={
                "type": one_of(*tool_schemas.types("DELETE", one=True)),
                "id": ID,
                "etag": _ETAG,
            },
            required=("type", "id"),
            result={"type": TEXT, "id": TEXT, "deleted": {"type": "boolean"}},
            effect="destroys",
            run=delete,
            scope="write",
        ),
        Tool(
            "act",
            "Do an action on a record",
            f"Actions by type: {by_type}. `values` as describe says. Ask the user first: most "
            "cannot be undone.",
            arguments={
                "type": one_of(*of),
                "id": ID,
                "action": one_of(*actions),
                "values": OBJECT,
                "idempotencyKey": KEY,
            },
            required=("type", "id", "action"),
            result=_WRITTEN,
            effect="changes",
            run=act,
            scope="write",
            repeatable=False,
        ),
    )
