"""Tests each operation and each event of facts/contract.json over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from gateway.rest.routes import ROUTES
from gateway.server.app_keys import KEYRING
from gateway.server.config import Config, Egress, Limits
from outbox.database.transaction import Database, Row, Tx
from tests.support.drain import add_webhook
from tests.support.receiver import receiver
from tests.support.rest import Person, Reply, RestApi
from tests.support.site import serving

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parent / "facts" / "contract.json").read_text("utf-8")
)
OPERATIONS: list[dict[str, Any]] = CONTRACT["operations"]
EVENTS: dict[str, list[str]] = {e["name"]: e["data"] for e in CONTRACT["events"]}
DELIVERING = Config(
    egress=Egress(allow_http=True, allow=("127.0.0.0/8",)),
    limits=Limits(read_per_second=0, write_per_second=0, sign_in_per_minute=0),
)

# The smallest body of a create, a change, and an invalid body.
CREATES: dict[str, dict[str, Any]] = {
    "contacts": {"name": "Bruno"},
    "companies": {"name": "Acme Ltda"},
    "deals": {"title": "Yearly supply", "value": 12500.5},
    "tasks": {"title": "Call back"},
    "products": {"name": "Coffee", "price": 89.9},
    "quotes": {"items": [{"description": "Coffee", "quantity": 2, "unitPrice": 89.9}]},
    "invoices": {"total": 980.9, "dueDate": "2026-12-15"},
}
CHANGES: dict[str, dict[str, Any]] = {
    "contacts": {"position": "Buyer"},
    "companies": {"industry": "Retail"},
    "deals": {"probability": 60},
    "tasks": {"priority": "high"},
    "products": {"price": 79.9},
    "quotes": {"notes": "Delivery included."},
    "invoices": {"notes": "Second copy."},
}


def test_the_contract_file_is_complete() -> None:
    assert len(OPERATIONS) == 29
    assert len(EVENTS) == 20
    assert len({(o["method"], o["path"]) for o in OPERATIONS}) == 29


def test_every_operation_has_a_route() -> None:
    routes = {(method, path) for method, path, _ in ROUTES}
    assert {(o["method"], o["path"]) for o in OPERATIONS} <= routes


async def rows(tx: Tx, sql: str, *args: Any) -> list[Row]:
    return await tx.all(sql, *args)


async def created(person: Person, plural: str, **more: Any) -> str:
    """Create a record and return its id."""
    reply = await person.post(f"/api/{plural}", CREATES[plural] | more)
    assert reply.status == 201, reply.text
    record_id: str = reply.body["id"]
    return record_id


# One request for each event, on an existing record of the kind that the name starts with.
Fire = Callable[[Person, str], Awaitable[Reply]]


def by(method: str, ending: str = "", body: dict[str, Any] | None = None) -> Fire:
    async def fire(person: Person, record: str) -> Reply:
        return await person.call(method, f"{record}{ending}", body)

    return fire


PLURALS = {
    "contact": "contacts", "company": "companies", "deal": "deals", "task": "tasks",
    "invoice": "invoices", "quote": "quotes", "product": "products",
}  # fmt: skip
FIRES: dict[str, Fire | None] = {
    # The create of the record has already emitted the created event.
    **{f"{noun}.created": None for noun in PLURALS},
    **{
        f"{noun}.updated": by("PUT", body=CHANGES[PLURALS[noun]])
        for noun in PLURALS
        if noun != "task"
    },
    **{f"{noun}.deleted": by("DELETE") for noun in PLURALS if noun not in ("quote", "invoice")},
    "task.completed": by("POST", "/complete"),
    "invoice.paid": by("POST", "/pay", {"method": "pix"}),
}


def test_every_event_has_a_trigger() -> None:
    assert FIRES.keys() == EVENTS.keys()


TYPES: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("value", "total", "price"), lambda v: isinstance(v, int | float)),
    "probability": lambda v: v is None or isinstance(v, int),
    **dict.fromkeys(
        ("createdAt", "updatedAt", "completedAt", "paidAt"),
        lambda v: re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", v) is not None,
    ),
    **dict.fromkeys(("id", "number", "name", "title"), lambda v: isinstance(v, str) and v != ""),
}


async def test_every_event_is_delivered_signed_with_exactly_its_fields(db: Database) -> None:
    """A request triggers each event; the receiver responds 401 to an invalid signature."""
    async with serving(db, DELIVERING, role="all") as site, receiver() as inbox:
        ana = await RestApi(site).person()
        _, inbox.secret = await add_webhook(
            db, site.app[KEYRING], f"{inbox.url}/hook", *EVENTS, owner=ana.user_id
        )
        expected: list[tuple[str, str]] = []
        for event, fire in FIRES.items():
            noun, _, _ = event.partition(".")
            plural = PLURALS[noun]
            record_id = await created(ana, plural)
            expected.append((f"{noun}.created", record_id))
            if fire is not None:
                reply = await fire(ana, f"/api/{plural}/{record_id}")
                assert reply.status == 200, (event, reply.text)
                expected.append((event, record_id))
        arrived = await inbox.wait(len(expected))
        delivered = [(dict(r.headers), json.loads(r.body)) for r in arrived]
        assert sorted((b["event"], b["data"]["id"]) for _, b in delivered) == sorted(expected)
        assert {b["event"] for _, b in delivered} == EVENTS.keys()
        for headers, body in delivered:
            assert list(body) == ["event", "timestamp", "data"]
            assert list(body["data"]) == EVENTS[body["event"]]
            for field, value in body["data"].items():
                assert TYPES.get(field, lambda v: True)(value), (body["event"], field, value)
            assert headers["Content-Type"] == "application/json"
            assert headers["X-Webhook-Event"] == body["event"]
            assert headers["X-Webhook-Timestamp"] == str(body["timestamp"])
            assert headers["X-Webhook-Signature"].startswith("sha256=")
            assert headers["User-Agent"] == "Carteiro-Webhook/1.0"
        # The feed returns the same bytes.
        feed = (await ana.get("/api/events?limit=100")).body["data"]
        assert [(e["event"], e["recordId"]) for e in feed] == expected
        sent = {dict(r.headers)["X-Webhook-Id"]: r.body for r in arrived}
        assert {e["id"]: e["body"].encode() for e in feed} == sent

    states = {row["state"] for row in await db.read(rows, "select state from deliveries")}
    assert states == {"delivered"}
