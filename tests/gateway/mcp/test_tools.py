"""The tools: their list, scopes and ownership of each, schemas against the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from gateway.domain.accounts import agents, api_keys, tokens
from gateway.domain.accounts.agents import Allowed
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.catalogue import BY_PLURAL, CATALOGUE
from gateway.domain.imports.columns import MADE_OF, MAKES, parts
from gateway.mcp import delivery_tools, tool_schemas
from gateway.mcp.methods import tools
from gateway.mcp.results import MOST_FAULTS
from gateway.records.audit import Actor
from gateway.rest.api_areas import OTHERS, areas_of
from gateway.rest.routes import ROUTES
from gateway.server.app_keys import KEYRING
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from tests.gateway.rest.test_resources import Town, town_of
from tests.support.document import faults
from tests.support.drain import add_webhook
from tests.support.mcp import ABOUT, Result, call, post
from tests.support.rest import Person, RestApi
from tests.support.tables import in_turn

MOST_TOKENS = 6_000
BYTES_A_TOKEN = 3
"""Fewer than any tokenizer in use needs for JSON in English, which is about four."""
ROOM = Capacity("node", "claim", 0, 0, 0, {}, 0)
SCOPES = (("read",), ("write",), ("read", "write"))
SECRETS = ("secret", "password", "token", "credential", "digest", "apikey", "authorization")
HARMLESS = {"passwordResetUrl"}
"""The address of a page of the store."""


class House:
    """Records of each type, a webhook and a delivery, all of one owner."""

    def __init__(self, town: Town, webhook_id: str, delivery_id: str) -> None:
        self.town, self.webhook_id, self.delivery_id = town, webhook_id, delivery_id

    def given(self, tool: str, plural: str) -> dict[str, Any]:
        """Return arguments of a tool for a type; the record is of this house."""
        resource = BY_PLURAL.get(plural)
        one: dict[str, Any] = {}
        if resource is not None:
            one = {"type": plural, "id": self.town.ids[resource.table]}
        by_tool: Mapping[str, dict[str, Any]] = {
            "describe": {"type": plural},
            "search": {"query": "zzz", "type": plural},
            "list": {"type": plural},
            "get": one,
            "create": {"type": plural, "record": {}},
            "update": {**one, "record": {}},
            "delete": one,
            "act": {**one, "action": (*tool_schemas.verbs().get(plural, ()), "none")[0]},
            "report": {"name": "sales"},
            "webhook_health": {"webhookId": self.webhook_id},
            "deliveries": {"id": self.delivery_id},
            "replay": {"id": self.delivery_id},
        }
        return by_tool[tool]


async def house_of(api: RestApi, who: Person, first: int) -> House:
    town = await town_of(api, who, first)
    webhook_id, _ = await add_webhook(
        api.db, api.site.app[KEYRING], "https://hooks.example.com/T0/B0/hidden?sig=hidden",
        "contact.created", owner=who.user_id, headers=(("X-Token", "hidden"),),
    )  # fmt: skip
    await who.post("/api/contacts", {"name": "Bruno"})
    await api.db.write(fan_out, ROOM)
    [delivery] = (await who.get("/api/deliveries")).body["data"]
    return House(town, webhook_id, delivery["id"])


def types_of(tool: str) -> list[str]:
    """Return the types that a tool takes, or one empty text."""
    its = tools()[tool].arguments.get("type", {})
    return list(its.get("enum", [""]))


@pytest.mark.parametrize("tool", tools())
async def test_each_tool_needs_its_scope_and_the_own_record(api: RestApi, tool: str) -> None:
    """The table of tools decides what is tried: a new tool is, too."""
    ana, bia = await api.person(), await api.person()
    own, strange = await house_of(api, ana, 0), await house_of(api, bia, 50)
    needs = tools()[tool].scope
    by_id = {"id", "webhookId"} & set(own.given(tool, types_of(tool)[0]))
    before = await _all(bia)
    for plural in types_of(tool):
        for scopes in SCOPES:
            key = await api.key_of(ana.user_id, scopes)
            if by_id:
                refused = await call(key, tool, **strange.given(tool, plural))
                assert refused.code == "forbidden", (plural, scopes, refused)
            if tool == "describe":
                continue
            if needs not in scopes:
                refused = await call(key, tool, **own.given(tool, plural))
                # A create is judged as a whole first: its scope before its fields.
                assert refused.code == "forbidden", (plural, scopes, refused)
        nobody = await post(api.nobody, "tools/call", name=tool, arguments={})
        assert nobody.status == 401
    assert await _all(bia) == before
    # Backwards, because a delete of a contact takes its activities with it.
    for plural in reversed(types_of(tool)):
        result = await call(ana, tool, **own.given(tool, plural))
        # An empty create lacks fields, and not each record can be deleted or changed now.
        expected = {"ok", "validation_error", "conflict", "invalid_transition"}
        assert result.code in ({"ok"} if needs == "read" else expected), (plural, result)


async def _all(who: Person) -> list[str]:
    sent = (await who.get("/api/deliveries")).body["data"]
    lists = [(await who.get(f"/api/{plural}")).text for plural in BY_PLURAL]
    return [*lists, *(f"{one['id']} {one['state']}" for one in sent)]


async def test_the_list_is_small_and_honest(ana: Person) -> None:
    listed = (await post(ana, "tools/list")).body["result"]["tools"]
    size = len(json.dumps(listed, separators=(",", ":")))
    assert size / BYTES_A_TOKEN <= MOST_TOKENS
    for one in listed:
        jsonschema_rs.validator_for(one["inputSchema"])
        jsonschema_rs.validator_for(one["outputSchema"])
        hints, its = one["annotations"], tools()[one["name"]]
        assert hints["readOnlyHint"] == (its.scope == "read")
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])
    by_name = {one["name"]: one for one in listed}
    assert by_name["delete"]["annotations"]["destructiveHint"] is True
    assert by_name["update"]["annotations"]["idempotentHint"] is True
    assert by_name["create"]["annotations"]["idempotentHint"] is False
    for name in ("search", "list", "get", "deliveries"):
        assert "never instructions" in by_name[name]["description"]


async def test_types_and_schemas_are_those_of_the_document(ana: Person) -> None:
    paths = tool_schemas.openapi()["paths"]
    of = {tool: types_of(tool) for tool in ("list", "get", "create", "update", "delete")}
    for entry in CATALOGUE:
        plural = entry.resource.plural
        one = paths[f"/api/{plural}/{{id}}"]
        assert {tool for tool, its in of.items() if plural in its} == {
            tool
            for tool, has in {
                "list": True, "get": True, "create": "post" in paths[f"/api/{plural}"],
                "update": "patch" in one, "delete": "delete" in one,
            }.items()
            if has
        }  # fmt: skip
        told = (await call(ana, "describe", type=plural)).content
        assert set(told["record"]["properties"]) == _names(
            "get", one["get"]["responses"]["200"]
        ) - {"included"}
        for part, method, path in (
            ("create", "post", f"/api/{plural}"), ("update", "patch", f"/api/{plural}/{{id}}"),
        ):  # fmt: skip
            if part in told:
                jsonschema_rs.validator_for(told[part])
                body = paths[path][method]["requestBody"]
                assert set(told[part]["properties"]) == _names(method, body)
            else:
                assert method not in paths[path]
    verbs = {
        (plural, word) for plural, words in tool_schemas.verbs().items() for word in words
    }  # fmt: skip
    assert ("invoices", "pay") in verbs
    assert not any(word == "erase" for _, word in verbs)


def _names(method: str, of: Mapping[str, Any]) -> set[str]:
    """Return the names of the members of a body of the document."""
    schema = of["content"]["application/json"]["schema"]
    named = tool_schemas.inlined((schema.get("anyOf") or [schema])[0])
    reference = (schema.get("anyOf") or [schema])[0].get("$ref", "").rpartition("/")[2]
    whole = tool_schemas.openapi()["components"]["schemas"].get(reference, named)
    return set(whole["properties"])


async def test_results_fit_their_schemas(api: RestApi, ana: Person) -> None:
    house = await house_of(api, ana, 0)
    for name, tool in tools().items():
        if tool.scope == "read":
            result = await call(ana, name, **house.given(name, types_of(name)[0]))
            check = jsonschema_rs.validator_for(tool.listed()["outputSchema"])
            assert [error.message for error in check.iter_errors(result.content)] == [], name
    shown = (await call(ana, "get", **house.given("get", "contacts"))).content["record"]
    assert faults({"$ref": "#/components/schemas/Contact"}, shown) == []


async def test_no_result_and_no_argument_has_a_secret(api: RestApi, ana: Person) -> None:
    house = await house_of(api, ana, 0)
    for name in tools():
        for plural in types_of(name):
            result = await call(ana, name, **house.given(name, plural))
            assert "hidden" not in str(result), (name, plural)
    for plural in BY_PLURAL:
        told = (await call(ana, "describe", type=plural)).content
        for part in ("record", "create", "update"):
            for field in told.get(part, {}).get("properties", {}):
                named = any(word in field.lower() for word in SECRETS)
                assert not named or field in HARMLESS, (plural, field)
    # Operational events tell of a webhook with its URL.
    event = json.dumps({"data": {"url": "https://u:p@h.example:8/hidden"}})
    assert json.loads(delivery_tools.origin_only("endpoint.failing", event) or "")["data"] == {
        "url": "https://h.example:8"
    }
    health = (await call(ana, "webhook_health")).content["data"]
    assert [one["origin"] for one in health] == ["https://hooks.example.com"]


BAD_ARGUMENTS: Mapping[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a type": (
        "list", {"type": "contact"}, {"field": "type", "nearest": "contacts"},
    ),
    "an argument": ("get", {"type": "deals", "idd": 1}, {"field": "idd", "nearest": "id"}),
    "a missing one": ("get", {"type": "deals"}, {"field": "id", "code": "required"}),
    "a number as text": ("search", {"query": 5}, {"field": "query", "message": "Send a text."}),
    "a limit": (
        "list", {"type": "deals", "limit": 101},
        {"field": "limit", "message": "Send a whole number from 1 to 100."},
    ),
    "a field": (
        "create", {"type": "contacts", "record": {"name": "A", "e-mail": "a@b.co"}},
        {"field": "e-mail", "code": "unknown_field", "nearest": "email"},
    ),
    "a value": (
        "create", {"type": "contacts", "record": {"name": "A", "source": "Webb"}},
        {"field": "source", "allowed": ["api", "web", "storefront", "import"], "nearest": "web"},
    ),
    "a value within a list": (
        "create",
        {"type": "invoices", "record": {"dueDate": "2030-01-01", "items": [{"descripton": "x"}]}},
        {"field": "items[0].descripton", "nearest": "description"},
    ),
    "a value of an update": (
        "update", {"type": "tasks", "id": "$tasks", "record": {"priority": "hihg"}},
        {"field": "priority", "nearest": "high"},
    ),
    "a filter": (
        "list", {"type": "tasks", "filters": {"prioritty": "high"}},
        {"field": "filters.prioritty", "code": "unknown_filter", "nearest": "priority"},
    ),
    "a value of a filter": (
        "list", {"type": "deals", "filters": {"status": "wonn"}},
        {"field": "status", "nearest": "won"},
    ),
    "a filter's kind": (
        "list", {"type": "deals", "filters": {"status": ["won"]}},
        {"field": "filters.status", "code": "invalid_filter"},
    ),
    "a sort key": ("list", {"type": "deals", "sort": "-age"}, {"field": "sort"}),
    "a cursor": ("list", {"type": "deals", "cursor": "x"}, {"field": "cursor"}),
    "an action": (
        "act", {"type": "quotes", "id": "$quotes", "action": "pay"}, {"field": "action"},
    ),
    "a report's group": (
        "report", {"name": "funnel", "groupBy": "month"}, {"field": "groupBy"},
    ),
    "a state of deliveries": (
        "deliveries", {"state": "faild"}, {"field": "state", "nearest": "failed"},
    ),
    "no word": ("search", {"query": " "}, {"field": "query"}),
}  # fmt: skip


@pytest.fixture
async def town(api: RestApi, ana: Person) -> Town:
    return await town_of(api, ana)


@in_turn("name", BAD_ARGUMENTS)
async def test_an_error_names_field_allowed_values_and_the_nearest(
    town: Town, ana: Person, name: str
) -> None:
    tool, given, expected = BAD_ARGUMENTS[name]
    if str(given.get("id", "")).startswith("$"):
        given = given | {"id": town.ids[given["id"][1:]]}
    result = await call(ana, tool, **given)
    assert result.code == "validation_error", result
    details = [one for one in result.error["details"] if one["field"] == expected["field"]]
    assert [{key: one.get(key) for key in expected} for one in details] == [expected], result
    if "nearest" in expected:
        assert expected["nearest"] in details[0]["allowed"]


async def test_an_error_names_a_few_of_many_faults(ana: Person) -> None:
    given: dict[str, Any] = {f"x{n}": n for n in range(5_000)}
    refused = await call(ana, "list", type="contacts", **given)
    assert len(refused.error["details"]) == MOST_FAULTS


async def test_malformed_and_unknown_ids_do_not_exist(ana: Person) -> None:
    for record_id in ("0" * 24, "x", "../keys", "", "0" * 24 + "/complete"):
        given: Mapping[str, dict[str, Any]] = {"get": {}, "delete": {}, "update": {"record": {}}}
        for tool, more in given.items():
            result = await call(ana, tool, type="tasks", id=record_id, **more)
            assert result.code == "not_found", (record_id, tool)
        assert (await call(ana, "replay", id=record_id)).code == "not_found"
        if record_id:
            assert (await call(ana, "deliveries", id=record_id)).code == "not_found"


async def test_a_record_is_written_read_and_deleted(ana: Person) -> None:
    new: dict[str, Any] = {"title": "Sale", "value": 10.50}
    made = (await call(ana, "create", type="deals", record=new, idempotencyKey="k1")).content
    again = (await call(ana, "create", type="deals", record=new, idempotencyKey="k1")).content
    assert again == made | {"replayed": True}
    other = await call(ana, "create", type="deals", record={"title": "B"}, idempotencyKey="k1")
    assert other.code == "idempotency_mismatch"
    meta = {**ABOUT, "idempotencyKey": "k1"}
    assert (await call(ana, "create", meta, type="deals", record=new)).content == again
    deal_id = made["record"]["id"]
    one: dict[str, Any] = {"type": "deals", "id": deal_id}
    assert made["record"]["value"] == 10.5
    won = {"status": "won"}
    changed = (await call(ana, "update", **one, record=won, etag=made["etag"])).content
    assert changed["record"]["status"] == "won"
    stale = await call(ana, "update", **one, record=won, etag=made["etag"])
    assert stale.code == "precondition_failed"
    assert stale.error["etag"] == changed["etag"]
    read = (await call(ana, "get", **one, fields=["title"])).content["record"]
    assert read == {"id": deal_id, "title": "Sale"}
    filtered: dict[str, Any] = {"type": "deals", "filters": {"status": "won", "minValue": 10.25}}
    assert (await call(ana, "list", **filtered)).content["total"] == 1
    found = (await call(ana, "search", query="sal")).content["data"]
    assert [(one["type"], one["record"]["id"]) for one in found] == [("deals", deal_id)]
    assert (await call(ana, "delete", **one)).content == {**one, "deleted": True}
    assert (await call(ana, "get", **one)).code == "not_found"


async def test_an_action_changes_a_record(ana: Person) -> None:
    record: dict[str, Any] = {"title": "Call", "dueDate": "2030-01-01"}
    task = (await call(ana, "create", type="tasks", record=record)).content["record"]
    done = await call(ana, "act", type="tasks", id=task["id"], action="complete")
    assert done.content["record"]["completed"] is True
    record = {"total": 10, "dueDate": "2030-01-01"}
    bill = (await call(ana, "create", type="invoices", record=record)).content["record"]
    pay: dict[str, Any] = {"type": "invoices", "id": bill["id"], "action": "pay"}
    wrong = await call(ana, "act", **pay, values={"method": "pixx"})
    assert wrong.error["details"][0]["nearest"] == "pix"
    paid = await call(ana, "act", **pay, values={"method": "pix"})
    assert (paid.content["record"]["status"], paid.content["record"]["method"]) == ("paid", "pix")
    assert (await call(ana, "act", **pay)).code == "invalid_transition"


async def test_a_list_is_bounded_in_bytes_and_goes_on(ana: Person) -> None:
    for number in range(9):
        record = {"name": f"c{number}", "notes": "x" * 9_000}
        await call(ana, "create", type="contacts", record=record)
    seen: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        page = (await call(ana, "list", type="contacts", **cursor)).content
        assert len(json.dumps(page)) < 60_000
        assert page["total"] == 9
        seen += [one["name"] for one in page["data"]]
        if "nextCursor" not in page:
            break
        assert "nextCursor" in page["leftOut"]
        cursor = {"cursor": page["nextCursor"]}
    assert seen == [f"c{number}" for number in range(8, -1, -1)]
    short = (await call(ana, "list", type="contacts", fields=["name"])).content
    assert (len(short["data"]), "leftOut" in short) == (9, False)


async def test_a_long_record_is_cut_and_says_so(ana: Person) -> None:
    record = {"name": "c", "notes": "x" * 9_000, "tags": ["t"]}
    await call(ana, "create", type="companies", record={"name": "c", "notes": "x" * 9_000})
    made = (await call(ana, "create", type="contacts", record=record)).content["record"]
    line = {"description": "d" * 400, "quantity": 1, "unitPrice": 1}
    items = {"items": [line] * 150}
    quote = (await call(ana, "create", type="quotes", record=items)).content["record"]
    whole = (await call(ana, "get", type="contacts", id=made["id"])).content
    assert "leftOut" not in whole
    cut = (await call(ana, "get", type="quotes", id=quote["id"])).content
    assert "items" in cut["leftOut"]
    assert len(json.dumps(cut)) < 60_000
    kept = (await call(ana, "get", type="quotes", id=quote["id"], fields=["items"])).content
    assert len(kept["record"]["items"]) == 150
    listed = (await call(ana, "list", type="quotes")).content
    assert "items" in listed["leftOut"]


async def test_deliveries_are_shown_and_replayed(api: RestApi, ana: Person) -> None:
    house = await house_of(api, ana, 0)
    page = (await call(ana, "deliveries", event="contact.created", limit=1)).content
    assert [one["id"] for one in page["data"]] == [house.delivery_id]
    shown = (await call(ana, "deliveries", id=house.delivery_id)).content["delivery"]
    assert json.loads(shown["body"])["data"]["name"] == "Bruno"
    given: dict[str, Any] = {"id": house.delivery_id, "idempotencyKey": "r1"}
    first = (await call(ana, "replay", **given)).content
    again = (await call(ana, "replay", **given)).content
    assert first["delivery"]["origin"] == "replay"
    assert again == first | {"replayed": True}
    health = (await call(ana, "webhook_health", webhookId=house.webhook_id)).content["data"]
    assert [(one["state"], one["waitingDeliveries"]) for one in health] == [("active", 2)]
    report = (await call(ana, "report", name="sales", groupBy="month")).content
    assert report["report"] == "sales"


async def test_an_account_can_forbid_deletes_and_replays(api: RestApi, ana: Person) -> None:
    house = await house_of(api, ana, 0)
    owner = Actor(ana.user_id, "session")
    await api.db.write(agents.allow, owner, Allowed(deletes=False, replays=False))
    for tool in ("delete", "replay"):
        refused = await call(ana, tool, **house.given(tool, "contacts"))
        assert (refused.code, "/console/keys" in refused.error["error"]) == ("forbidden", True)
    assert (await call(ana, "get", **house.given("get", "contacts"))).code == "ok"
    contact = house.given("get", "contacts")["id"]
    # The setting is for programs with MCP; the REST API is as before.
    assert (await ana.post(f"/api/deliveries/{house.delivery_id}/replay")).status == 202
    assert (await ana.delete(f"/api/contacts/{contact}")).status == 200
    await api.db.write(agents.allow, owner, Allowed(deletes=True, replays=True))
    assert (await call(ana, "replay", **house.given("replay", ""))).code == "ok"


async def test_a_key_can_be_for_chosen_resources(api: RestApi, ana: Person) -> None:
    house = await house_of(api, ana, 0)
    text = tokens.make(api.db.ids)
    account = CheckedAccount(ana.user_id, 1, None)
    await api.db.write(tokens.add, account, text=text, lifetime=3600)
    token = Person(api.site.http, ana.user_id, {"Authorization": f"Bearer {text}"})
    asked = {"name": "agent", "scopes": ["read"], "resources": ["contacts", "reports"]}
    made = await token.post("/api/keys", asked)
    assert (made.status, made.body["resources"]) == (201, ["contacts", "reports"])
    key = Person(api.site.http, ana.user_id, {"X-API-Key": made.body["key"]})
    reached = {
        path: (await key.get(path.replace("{id}", house.town.ids["contacts"]))).status
        for path in (
            "/api/contacts", "/api/contacts/{id}", "/api/reports/sales", "/api/me",
            "/api/export/contacts.csv", "/api/contacts?include=company", "/api/deals",
            "/api/export/deals.csv", "/api/deliveries", "/api/webhooks", "/api/events",
            "/api/audit", "/api/imports", "/api/contacts/{id}/data-export",
            "/api/settings/pipeline", "/api/log/checkpoints",
        )
    }  # fmt: skip
    assert {path for path, status in reached.items() if status != 403} == {
        "/api/contacts", "/api/contacts/{id}", "/api/reports/sales", "/api/me",
        "/api/export/contacts.csv",
    }  # fmt: skip
    assert (await key.call("PATCH", "/api/me", {"name": "x"})).status == 403
    assert (await call(key, "list", type="contacts")).code == "ok"
    for tool, plural in (("list", "deals"), ("webhook_health", ""), ("deliveries", "")):
        assert (await call(key, tool, **house.given(tool, plural))).code == "forbidden"
    assert (await call(key, "create", type="contacts", record={"name": "x"})).code == "forbidden"
    await call(ana, "create", type="companies", record={"name": "Bruno Ltda"})
    for who, types in ((ana, {"contacts", "companies"}), (key, {"contacts"})):
        found: Result = await call(who, "search", query="bruno")
        assert {one["type"] for one in found.content["data"]} == types
    both = Person(
        api.site.http, "", {**key.headers, "Authorization": f"Bearer {ana.headers['X-API-Key']}"}
    )
    assert (await both.get("/api/contacts")).body["code"] == "conflicting_credentials"


def test_keys_can_be_for_each_part_of_the_api() -> None:
    assert set(api_keys.RESOURCES) == {*BY_PLURAL, *OTHERS}
    reached = {path: areas_of(path.replace("{id}", "0" * 24)) for _, path, _ in ROUTES}
    assert {area for areas in reached.values() for area in areas} == {*BY_PLURAL, *OTHERS}
    assert reached["/api/quotes/{id}/convert"] == ("quotes", "invoices")
    assert reached["/api/contacts/{id}/data-export"] == ()
    # A column that names a record by its name makes it, where it is not there.
    naming = {
        (target, to.table)
        for entry in CATALOGUE
        for field, to in entry.resource.references
        for target in (parts(entry.resource) if entry.create else ())
        if MADE_OF[target] == field.name
    }
    assert naming == {*MAKES.items()}


async def test_the_audit_log_names_the_client(api: RestApi, ana: Person) -> None:
    await call(ana, "create", type="contacts", record={"name": "by tool"})
    await ana.post("/api/contacts", {"name": "by hand"})
    info = {"name": "A\n\u202e" + "x" * 300, "version": "2"}
    meta = {**ABOUT, "io.modelcontextprotocol/clientInfo": info}
    await call(ana, "create", meta, type="contacts", record={"name": "odd"})
    odd, hand, tool = (await ana.get("/api/audit?limit=3")).body["data"]
    assert (tool["via"], tool["client"]) == ("mcp", "Tester 1")
    assert "via" not in hand
    assert len(odd["client"]) == 100
    assert odd["client"].isprintable()
