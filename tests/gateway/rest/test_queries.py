"""Parameters that do not fit their declaration, and unknown names with Prefer: handling=strict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.rest.document.operations import Operation, Parameter
from gateway.rest.queries import rule_of
from gateway.rest.routes import ROUTES
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database
from tests.support.rest import RestApi
from tests.support.site import serving
from tests.support.tables import in_turn

ASKED: list[tuple[str, str, Operation]] = [
    (method, path, operation)
    for method, path, operation in ROUTES
    if any(p.where == "query" for p in operation.parameters)
]
JSON = "application/json"
CLOSED = ("/api/payments/callback/{id}", "/api/auth/signup")
"""These refuse the caller before they look at the body: no store signed it, nobody may sign up."""
STRICT: dict[str, Any] = {"Prefer": "handling=strict"}


def ruled(operation: Operation) -> list[Parameter]:
    return [p for p in operation.parameters if p.where == "query" and rule_of(p) is not None]


def test_each_rule_takes_the_example_of_its_parameter() -> None:
    for _, path, operation in ASKED:
        for one in ruled(operation):
            rule, text = rule_of(one), one.example
            text = json.dumps(text) if not isinstance(text, str) else text
            assert rule is not None
            assert rule.fits(text), (path, one.name)
            assert rule.message.endswith("."), (path, one.name)
    with pytest.raises(ValueError, match="size"):
        rule_of(Parameter("size", {"type": "array"}, "A size.", []))


async def test_every_operation_names_each_parameter_that_does_not_fit(api: RestApi) -> None:
    ana = await api.person()
    for method, path, operation in ASKED:
        names = [one.name for one in ruled(operation)]
        query = "&".join(f"{name}=%F0%9F%98%80" for name in names)
        target = f"{path.replace('{entityId}', '0' * 24)}?{query}"
        reply = await ana.call(method, target)
        if names:
            assert reply.status == 400, (path, reply.text)
            assert reply.faults == dict.fromkeys(names, "invalid_parameter"), path
            assert (await api.nobody.call(method, target)).status == 401, path


@in_turn(
    ("path", "wrong", "message"),
    [
        ("activities/recent", "limit=-1", "Send a whole number from 1; the default is 10."),
        ("deals", "status=won&status=x", "Send one of: open, won, lost."),
        ("export/products.csv", "bom=1", "Send true or false; the default is false."),
        ("tasks", "contactId=maria", "Send an id: 24 hexadecimal digits."),
        ("digest/contacts", "from=2026-11-01", "Send an id: 24 hexadecimal digits."),
        ("audit", "action=renamed", "Send one of: created, "),
        ("deliveries", "event=order.shipped", "Send one of: contact.created, "),
        ("events?webhook=019a9d1c2f004b7de1a0c3f2", "from=a", "Send a whole number from 1."),
        ("reports/sales", "from=2026-02-30", "Send a date or a date-time, such as 2026-12-01 or "
         "2026-12-01T14:30:00Z."),
    ],
)  # fmt: skip
async def test_a_message_names_the_parameter_and_what_fits(
    api: RestApi, path: str, wrong: str, message: str
) -> None:
    ana = await api.person()
    reply = await ana.get(f"/api/{path}{'&' if '?' in path else '?'}{wrong}")
    name = wrong.partition("=")[0]
    assert (reply.status, reply.faults) == (400, {name: "invalid_parameter"})
    assert reply.body["details"][0]["message"].startswith(message)


@in_turn(
    ("path", "right"),
    [
        ("contacts", "limit=101"), ("contacts", "page=99999999999999999999"), ("contacts", "sort="),
        ("contacts", "updatedSince=2026-11-22T09:00:00+03:00"), ("events", "after="),
        ("deals", "maxValue=10.5&status=won"), ("audit", f"actor={'A' * 24}"),
        ("tasks/calendar", "start=2026-12-01&end=2026-12-31T23:59:59-03:00"),
    ],
)  # fmt: skip
async def test_what_fits_is_answered(api: RestApi, path: str, right: str) -> None:
    ana = await api.person()
    reply = await ana.get(f"/api/{path}?{right}")
    assert (reply.status, reply.body["data"]) == (200, [])


async def test_a_key_without_the_scope_learns_nothing_of_the_query(api: RestApi) -> None:
    ana = await api.person()
    blind = await api.key_of(ana.user_id, ["write"])
    assert (await blind.get("/api/contacts?limit=abc")).status == 403


LINE = {"description": "Tea", "quantity": 1, "unitPrice": 2, "discont": 1}


@in_turn(
    ("method", "path", "body", "names"),
    [
        ("POST", "contacts", {"name": "Bo", "nmae": 1, "id": 1}, ["nmae", "id"]),
        ("PUT", "contacts/{id}", {"nmae": 1}, ["nmae"]),
        ("POST", "contacts/upsert", {"name": "Bo", "email": "b@example.com", "nmae": 1},
         ["nmae"]),
        ("POST", "contacts/batch", {"items": [{"name": "Bo"}], "atomc": True}, ["atomc"]),
        ("POST", "quotes", {"items": [LINE]}, ["items[0].discont"]),
        ("PUT", "settings/pipeline", {"stage": []}, ["stage"]),
        ("PATCH", "me", {"nmae": 1}, ["nmae"]),
        ("GET", "contacts?colour=red", None, ["colour"]),
        ("GET", "contacts?fields=nmae,name", None, ["fields.nmae"]),
        ("GET", "me?verbose=1", None, ["verbose"]),
    ],
)  # fmt: skip
async def test_strict_requests_refuse_what_others_ignore(
    api: RestApi, method: str, path: str, body: Any, names: list[str]
) -> None:
    ana = await api.person()
    contact = (await ana.post("/api/contacts", {"name": "Bo"})).body["id"]
    target = f"/api/{path.replace('{id}', contact)}"
    code = "unknown_parameter" if body is None else "unknown_field"
    strict = await ana.call(method, target, body, **STRICT)
    assert (strict.status, strict.faults) == (400, dict.fromkeys(names, code))
    assert strict.headers["Preference-Applied"] == "handling=strict"
    for prefer in ("handling=lenient", "handling=lenient, handling=strict", "respond-async"):
        reply = await ana.call(method, target, body, Prefer=prefer)
        assert reply.status < 300, reply.text
        header = "Parameters" if body is None else "Fields"
        assert reply.headers[f"X-Ignored-{header}"] == ", ".join(names)
        assert "Preference-Applied" not in reply.headers


async def test_a_strict_request_without_unknown_names_is_done(api: RestApi) -> None:
    ana = await api.person()
    for prefer in ("handling=strict", 'Wait=1, HANDLING = "strict"; foo'):
        made = await ana.call("POST", "/api/contacts", {"name": "Bo"}, Prefer=prefer)
        assert (made.status, made.headers["Preference-Applied"]) == (201, "handling=strict")
    read = await ana.get("/api/contacts?limit=1", **STRICT)
    assert (read.status, read.headers["Preference-Applied"]) == (200, "handling=strict")
    items = [{"name": "A"}, {"name": "B", "nmae": 1}]
    batch = await ana.call("POST", "/api/contacts/batch", {"items": items}, **STRICT)
    assert [one["status"] for one in batch.body["results"]] == [201, 400]


async def test_a_refused_body_names_what_would_be_ignored(api: RestApi) -> None:
    ana = await api.person()
    reply = await ana.post("/api/contacts", {"nmae": "Bo", "x" * 99: 1})
    assert (reply.status, reply.faults) == (400, {"name": "required"})
    assert reply.body["ignored"] == ["nmae", "x" * 64]
    assert "ignored" not in (await ana.post("/api/contacts", {})).body


async def test_a_parameter_of_paging_costs_nothing_where_there_are_no_pages(
    still: Database,
) -> None:
    async with serving(still, Config(limits=Limits(read_per_second=1, burst=4))) as site:
        ana = await RestApi(site).person()
        replies = [await ana.get("/api/me?limit=1&page=2") for _ in range(5)]
        assert [reply.status for reply in replies] == [200, 200, 200, 200, 429]
        assert replies[0].headers["X-Ignored-Parameters"] == "limit, page"


async def test_a_key_in_place_of_a_token_is_a_missing_credential(api: RestApi) -> None:
    ana = await api.person()
    for method, path in (("GET", "keys"), ("POST", "keys"), ("DELETE", "auth/token")):
        assert (await ana.call(method, f"/api/{path}", {})).status == 401, path


async def test_every_body_names_its_unknown_fields(api: RestApi) -> None:
    """The records of a path are made from the examples of the document, in its order."""
    ana, made = await api.person(), dict[str, str]()
    for method, path, operation in ROUTES:
        plural = path.split("/")[2]
        if operation.body is None or operation.body_type != JSON or path in CLOSED:
            continue
        body = {**_pointed(operation.body.example, made), "nmae": 1}
        target = path.replace("{id}", made.get(plural, "0" * 24))
        strict = await ana.call(method, f"{target}?colour=1", body, **STRICT)
        if strict.status in (404, 409):
            # No such record, or no mail server: these come first.
            assert plural not in made or path.endswith("/send"), path
            continue
        if strict.status == 401:
            assert operation.credential == "token", path
            continue
        assert strict.status == 400, (path, strict.text)
        named = {name: code for name, code in strict.faults.items() if code == "unknown_field"}
        assert {*named} >= {"nmae", "colour"}, (path, strict.text)
        lenient = await ana.call(method, target, body)
        told = lenient.headers.get("X-Ignored-Fields") or lenient.body.get("ignored")
        assert lenient.status in (401, 409) or "nmae" in told, (path, lenient.text)
        if lenient.status == 201 and path == f"/api/{plural}":
            made[plural] = lenient.body["id"]


def _pointed(body: dict[str, Any], made: dict[str, str]) -> dict[str, Any]:
    """Return a body whose store exists."""
    items = [
        _pointed(item, made) if isinstance(item, dict) else item for item in body.get("items", ())
    ]
    body = {**body, "items": items} if items else {**body}
    return {**body, "storeId": made["stores"]} if "storeId" in body else body
