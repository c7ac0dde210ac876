"""Calls of the REST API get their recorded responses: all resources and edge cases."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.catalogue import CATALOGUE
from gateway.server.config import Auth, Config
from tests.gateway.rest.corpus.corpus import Call, compare
from tests.support.rest import UNLIMITED

OPEN = Config(auth=Auth(signup="open"), limits=UNLIMITED.limits)
JSON = "application/json"
NOWHERE = "0123456789ab0123456789ab"
DAY = "2026-12-15"


LINES = [
    {"description": "Coffee", "quantity": 2, "unitPrice": 89.9},
    {"description": "Filter", "quantity": 0.5, "unitPrice": 10},
]
FULL: dict[str, dict[str, Any]] = {
    "companies": {
        "name": "Padaria Modelo Ltda", "cnpj": "11.222.333/0001-81", "email": "oi@padaria.example",
        "phone": "(11) 3333-4444", "website": "padaria.example", "size": "11-50",
        "industry": "Food", "notes": "Opens at six.", "unknown": 1,
    },
    "contacts": {
        "name": "Maria da Silva", "email": "maria@example.com", "phone": "(11) 98888-7777",
        "position": "Buyer", "notes": "Met at the fair.", "companyId": "{companies}",
        "tags": ["vip", "fair", "vip"], "source": "web", "consent": True, "phoneE164": "x",
    },
    "products": {
        "name": "Coffee 1 kg", "price": 89.9, "sku": "CAF-1", "description": "Beans.",
        "stock": 12, "slug": "coffee-1-kg",
        "images": [{"url": "https://shop.example/a.jpg", "alt": "A bag"}],
    },
    "deals": {
        "title": "Yearly supply", "value": 12500.5, "stage": "proposal", "probability": 60,
        "companyId": "{companies}", "contactIds": ["{contacts}", "{contacts}"],
        "expectedCloseDate": DAY, "status": "won",
    },
    "tasks": {
        "title": "Call back", "description": "Ask about the date.", "dueDate": DAY,
        "priority": "high", "contactId": "{contacts}", "dealId": "{deals}", "completed": True,
    },
    "activities": {
        "type": "call", "description": "Asked for a new quote.", "relatedTo": "{contacts}",
        "relatedType": "contact", "metadata": {"big": 12345678901234567890, "a": [1.50, None]},
    },
    "quotes": {
        "items": LINES, "discount": 4.8, "contactId": "{contacts}", "companyId": "{companies}",
        "dealId": "{deals}", "validUntil": DAY, "notes": "Delivery included.",
    },
    "invoices": {
        "items": LINES, "shipping": 15.5, "total": 200.3, "dueDate": "2026-11-30T10:00:00-03:00",
        "contactId": "{contacts}", "quoteId": "{quotes}",
    },
}  # fmt: skip
LEAST: dict[str, dict[str, Any]] = {
    "companies": {"name": "Acme"},
    "contacts": {"name": "Bruno"},
    "products": {"name": "Tea", "price": 5},
    "deals": {"title": "Trial", "value": 0},
    "tasks": {"title": "Write"},
    "activities": {
        "type": "note", "description": "Hm.", "relatedTo": "{companies}", "relatedType": "company",
    },
    "quotes": {"items": LINES[:1]},
    "invoices": {"total": 980.9, "dueDate": "2026-11-01"},
}  # fmt: skip
WRONG: dict[str, list[Any]] = {
    "companies": [
        {}, [], 5, {"name": ""}, {"name": None, "cnpj": "11222333000182"},
        {"name": "A", "cnpj": "1", "website": "no spaces", "size": "12"},
        {"name": "A", "cnpj": "11222333000182"},
    ],
    "contacts": [
        {"name": "   ", "email": "maria", "phone": "x", "companyId": "nope", "tags": "vip"},
        {"name": "A", "companyId": NOWHERE}, {"name": "A" * 201},
        {"name": "A", "tags": [1, "", "x" * 65], "consent": "yes", "source": "radio"},
    ],
    "products": [
        {"name": "A"}, {"name": "A", "price": -1}, {"name": "A", "price": 1.005},
        {"name": "A", "price": "5", "slug": "No Slug", "stock": 1.5},
        {"name": "A", "price": 5, "images": [{"url": "ftp://x"}, 5]},
        {"name": "A", "price": 1, "sku": "CAF-1"},
    ],
    "deals": [
        {"title": "A", "value": 1e15}, {"title": "A", "value": True, "probability": 101},
        {"title": "A", "value": 1, "contactIds": [NOWHERE, "x"], "companyId": "{contacts}"},
        {"title": "A", "value": 1, "contactIds": ["{contacts}", NOWHERE, "{companies}"]},
    ],
    "tasks": [
        {"title": "A", "dueDate": "soon", "priority": "now"}, {"title": "A", "dueDate": 5},
        {"title": "A", "dealId": "{contacts}", "contactId": "{deals}"},
    ],
    "activities": [
        {"type": "x"}, {"type": "call", "description": "A", "relatedTo": "{contacts}",
                        "relatedType": "deal"},
        {"type": "call", "description": "A", "relatedTo": "{contacts}", "relatedType": "lead",
         "metadata": [1]},
    ],
    "quotes": [
        {}, {"items": []}, {"items": [{"quantity": 0}]}, {"items": LINES, "discount": 1000},
        {"items": LINES, "total": 1}, {"items": [{"productId": NOWHERE, "quantity": 1}]},
        {"items": LINES, "validUntil": "2026-13-01", "contactId": "{deals}"},
    ],
    "invoices": [
        {"dueDate": DAY}, {"total": 5}, {"total": 5, "dueDate": DAY, "items": LINES},
        {"total": 5, "dueDate": DAY, "shipping": 6}, {"total": 5, "dueDate": DAY, "quoteId": "x"},
    ],
}  # fmt: skip
CHANGES: dict[str, list[Any]] = {
    "companies": [{"industry": "Retail"}, {"cnpj": None, "notes": None}, {"name": None}, {}],
    "contacts": [
        {"phone": "+1 212 555 0100"}, {"companyId": None, "tags": None}, {"source": "api"},
        {"tags": ["b", "a"]}, {"name": "Maria da Silva"}, {"position": 5},
    ],
    "products": [{"price": 79.9}, {"sku": None}, {"sku": "CAF-1"}, {"stock": None}],
    "deals": [
        {"status": "won"}, {"status": "won"}, {"lostReason": "Price"}, {"status": None},
        {"status": "lost", "lostReason": "Price"}, {"lostReason": "Time"}, {"status": "open"},
        {"contactIds": []}, {"expectedCloseDate": "2026-12-15T00:00:00.000Z"}, {"stage": "odd"},
        {"value": 1.999}, {"closedAt": DAY},
    ],
    "tasks": [
        {"priority": "low"}, {"dueDate": "2026-12-15T00:00:00.000Z"}, {"dueDate": None},
        {"dueDate": "2026-11-20"}, {"completed": True}, {"priority": None},
    ],
    "activities": [
        {"description": "Met."}, {"relatedType": "company"},
        {"relatedTo": "{companies}", "relatedType": "company"}, {"createdBy": NOWHERE},
        {"metadata": None}, {"type": None},
    ],
    "quotes": [
        {"notes": "Soon."}, {"discount": 0}, {"items": LINES[:1]}, {"total": 5},
        {"validUntil": "2026-11-01"}, {"status": "rejected"}, {"status": "draft"},
    ],
    "invoices": [
        {"notes": "Copy."}, {"shipping": 0, "total": 184.8}, {"status": "pending"},
        {"status": "odd"}, {"dueDate": None}, {"paidAt": DAY},
    ],
}  # fmt: skip
ONCE = {"cnpj", "sku", "slug", "stage"}
"""What another record has, or the pipeline no longer."""
REFERRED = {"activities": {"relatedTo": "{companies-least}", "relatedType": "company"}}
NAMED = dict.fromkeys(FULL, "name") | {
    "deals": "title", "tasks": "title", "activities": "type", "quotes": "number",
    "invoices": "number",
}  # fmt: skip
QUERIES: dict[str, list[str]] = {
    "companies": ["search=PADARIA", "sort=name", "sort=-name,createdAt", "search=%00"],
    "contacts": [
        "search=silva", "search=MARÍA", "tag=vip", "tag=b", "companyId={companies}",
        "sort=-updatedAt", "ids={contacts}", "ids=x", "ids={contacts},{contacts-least},zz",
        "updatedSince=2026-11-22", "updatedSince=2026-11-22T09:00:00-03:00", "updatedSince=x",
        "sort=phone", "cursor=zz", "sort=name&cursor=zz", "page=2", "page=0&limit=500",
        "include=company", "include=company,deals&fields=name", "limit=2&a b=1&%0D%0AX=2&o=3&o=4",
        "limit=1", "limit=1&page=2", "limit=x&page=x", "page=99999999999999999999999",
        "search=a%1Fb", "search=%20", "updatedSince=2026-11-22T09:00:00+03:00&limit=1",
    ],
    "products": ["search=cafe", "search=coffee", "category=Tea", "sku=CAF-1", "active=true",
                 "published=0", "sort=price"],
    "deals": [
        "status=open", "status=odd", "stage=proposal", "contactId={contacts}", "minValue=1",
        "include=contacts, company,company&limit=1", "include=company&search=supply",
        "maxValue=0", "minValue=x", "companyId={companies}", "sort=expectedCloseDate,-value",
    ],
    "tasks": [
        "completed=false", "completed=x", "priority=high", "dealId={deals}", "sort=dueDate",
        "contactId={contacts}",
    ],
    "activities": [
        "include=related", "type=call", "relatedTo={contacts}", "relatedType=company", "type=x",
    ],
    "quotes": ["status=sent", "status=expired", "number=Q-000001", "dealId={deals}"],
    "invoices": [
        "overdue=true", "overdue=false", "overdue=1", "from=2026-11-22", "to=2026-11-21",
        "to=2026-11-22", "from=x", "number=INV-000001", "quoteId={quotes}", "sort=-dueDate",
        "status=pending", "from=2026-11-22T00:00:00-03:00&to=2026-11-22T23:00:00Z",
    ],
}  # fmt: skip


def calls() -> Iterator[Call]:
    """Yield all calls in order."""
    for plural in FULL:
        path = f"/api/{plural}"
        yield Call("POST", path, FULL[plural], save=plural, minutes=1)
        yield Call("POST", path, LEAST[plural], save=f"{plural}-least")
        for body in WRONG[plural]:
            yield Call("POST", path, body)
    for plural in FULL:
        one = f"/api/{plural}/{{{plural}}}"
        yield Call("GET", one)
        yield Call("GET", one, headers={"If-None-Match": 'W/"1"'})
        for body in CHANGES[plural]:
            yield Call("PUT", one, body, minutes=1)
        yield Call("PATCH", one, {"unknown": 1, "id": "x"})
        yield Call("PATCH", one, {}, headers={"If-Match": '"99"'})
        yield Call("PATCH", one, {}, headers={"If-Match": 'W/"1", *'})
        yield Call("GET", one, who="bia")
        yield Call("PUT", one, {"notes": 5}, who="bia")
        yield Call("GET", f"/api/{plural}/{NOWHERE}")
        yield Call("PUT", f"/api/{plural}/x", {})
        yield Call("HEAD", one)
        yield Call("GET", f"{one}?fields=createdAt, {NAMED[plural]},,id,nme&include=compny&limt=5")
    for plural, queries in QUERIES.items():
        yield Call("GET", f"/api/{plural}")
        yield Call("GET", f"/api/{plural}?fields={NAMED[plural]}&limit=1")
        for query in queries:
            yield Call("GET", f"/api/{plural}?{query}")
    yield from _credentials()
    yield from _bodies()
    yield from _verbs()
    yield from _figures()
    yield from _account()
    yield from _ends()


def _credentials() -> Iterator[Call]:
    for who in ("nobody", "reader", "writer", "false"):
        yield Call("GET", "/api/contacts", who=who)
        yield Call("GET", "/api/contacts/{contacts}", who=who)
        yield Call("POST", "/api/contacts", {"name": "C"}, who=who)
        yield Call("PUT", "/api/contacts/{contacts}", {"position": "D"}, who=who)
        yield Call("GET", "/api/deals/pipeline-stats", who=who)
        yield Call("GET", "/api/tasks/calendar?start=x", who=who)


def _bodies() -> Iterator[Call]:
    path = "/api/contacts"
    json = {"Content-Type": JSON}
    for raw in (b"", b"{", b'{"name":"A","name":"B"}', b'{"name":NaN}', b"\xff", b'"\\ud800"'):
        yield Call("POST", path, raw=raw, headers=json)
    for kind in (
        "application/json; charset=utf-8", "Application/JSON;charset=UTF-8", "text/plain",
        "application/merge-patch+json", "application/x+json", "application/x-www-form-urlencoded",
        "application/json; charset=utf-16", "application/json; charset*=punycode''x", "rubbish",
    ):  # fmt: skip
        yield Call("POST", path, raw=b'{"name":"A"}', headers={"Content-Type": kind})
    yield Call("POST", path, raw=b'{"name":"A"}')
    strange = {"name": "X", "id": NOWHERE, "a b": 2, "é\r\nX-Evil: 1": 3, "createdAt": "x"}
    yield Call("POST", path, strange)
    yield Call("POST", path, {"name": "X"} | {f"f{i}": i for i in range(12)})
    for key in ("k1", "k1", "k2", "", "é"):
        yield Call("POST", path, {"name": "Once"}, headers={"Idempotency-Key": key}, minutes=1)
    yield Call("POST", path, {"name": "Other"}, headers={"Idempotency-Key": "k1"})
    yield Call("POST", path, {"name": 5}, headers={"Idempotency-Key": "k3"})
    yield Call("POST", path, {"name": "Now good"}, headers={"Idempotency-Key": "k3"})
    yield Call("POST", path, {"name": "Writer"}, "writer", {"Idempotency-Key": "k4"})
    yield Call("POST", path, {"name": "Writer"}, headers={"Idempotency-Key": "k4"})
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "HEAD"):
        yield Call(method, path)
    for path in ("/api/tasks/overdue", "/api/deals/pipeline-stats", "/api/activities/recent"):
        for method in ("PUT", "PATCH", "DELETE", "POST", "OPTIONS"):
            yield Call(method, path, {} if method == "PUT" else None)
    for path in ("/api/none", "/api/tasks/recent", "/api/webhooks/x", "/api/activities/recent/x"):
        yield Call("GET", path)
        yield Call("POST", path, {})


def _verbs() -> Iterator[Call]:
    for verb in ("complete", "complete", "reopen", "reopen", "burn"):
        yield Call("POST", f"/api/tasks/{{tasks}}/{verb}", minutes=1)
    yield Call("POST", "/api/tasks/{tasks}/complete", who="bia")
    yield Call("POST", f"/api/tasks/{NOWHERE}/complete")
    quote = "/api/quotes/{quotes-least}"
    yield Call("POST", f"{quote}/reject")
    yield Call("POST", f"{quote}/convert")
    yield Call("POST", f"{quote}/send", minutes=1, headers={"Idempotency-Key": "s"})
    yield Call("POST", f"{quote}/send", headers={"Idempotency-Key": "s"})
    yield Call("PUT", quote, {"notes": "late"})
    yield Call("PUT", quote, {"status": "draft"})
    yield Call("POST", f"{quote}/accept", minutes=1)
    yield Call("POST", f"{quote}/convert", {"dueDate": "x"})
    yield Call("POST", f"{quote}/convert", {"dueDate": "2026-12-24", "total": 5}, save="converted")
    yield Call("POST", f"{quote}/convert")
    yield Call("GET", quote)
    yield Call("PUT", "/api/quotes/{quotes}", {"validUntil": "2026-11-20"})
    yield Call("POST", "/api/quotes/{quotes}/send")
    yield Call("POST", "/api/quotes/{quotes}/cancel")
    yield Call("POST", "/api/quotes/{quotes}/accept")
    invoice = "/api/invoices/{invoices}"
    yield Call("POST", f"{invoice}/pay", {"method": "gold", "paidAt": "x"})
    yield Call("POST", f"{invoice}/pay", {"method": "pix", "paidAt": "2026-11-20", "reason": "x"})
    yield Call("POST", f"{invoice}/cancel", {"reason": "Twice"})
    yield Call("PUT", invoice, {"notes": "late"})
    yield Call("PUT", "/api/invoices/{converted}", {"status": "canceled"}, minutes=1)
    yield Call("POST", "/api/invoices/{invoices-least}/cancel", {"reason": "Twice"})
    yield Call("POST", "/api/invoices/{invoices-least}/pay")


def _figures() -> Iterator[Call]:
    yield Call("GET", "/api/deals/pipeline-stats")
    for name in ("overdue", "upcoming", "calendar"):
        yield Call("GET", f"/api/tasks/{name}")
        yield Call("GET", f"/api/tasks/{name}?limit=1&page=2")
    for query in ("start=2026-11-20", "end=2026-12-16", "start=x", "start=2026-12-01&end=2026-11"):
        yield Call("GET", f"/api/tasks/calendar?{query}")
    yield Call("GET", "/api/tasks/calendar?start=2026-11-01T00:00:00-03:00&end=2027-01-01")
    yield Call("GET", "/api/activities/recent")
    yield Call("GET", "/api/activities/recent?limit=1")
    yield Call("GET", "/api/activities/entity/{companies}")
    yield Call("GET", "/api/activities/entity/x?type=call")
    settings = "/api/settings/pipeline"
    yield Call("GET", settings)
    yield Call("PUT", settings, {"stages": ["a", "b", "a"], "strict": True, "x": 1})
    yield Call("PUT", settings, {"strict": None}, headers={"If-Match": '"0"'})
    yield Call("PUT", settings, {"stages": []})
    yield Call("PUT", settings, {"stages": [""], "strict": 1})
    yield Call("PUT", "/api/deals/{deals}", {"stage": "c", "probability": 500})
    yield Call("POST", "/api/deals", {"title": "A", "value": 1, "stage": "c"})
    yield Call("PUT", "/api/deals/{deals}", {"stage": "odd", "probability": 50})
    yield Call("PUT", "/api/deals/{deals}", {"stage": "b"})
    yield Call("GET", "/api/deals/pipeline-stats")
    yield Call("GET", "/api/reports")
    for name in ("sales", "funnel", "receivables", "activities", "leads"):
        yield Call("GET", f"/api/reports/{name}")
        yield Call("GET", f"/api/reports/{name}?format=csv&from=2026-11-01&to=2026-11-30")
        yield Call("GET", f"/api/reports/{name}?groupBy=odd")
    for query in ("from=x", "to=2026-11-01&from=2026-11-02", "timezone=Mars", "format=pdf",
                  "from=1990-01-01&groupBy=day", "groupBy=week&timezone=Asia/Tokyo"):  # fmt: skip
        yield Call("GET", f"/api/reports/sales?{query}")


def _account() -> Iterator[Call]:
    yield Call("GET", "/api/me")
    yield Call("PATCH", "/api/me", {"timezone": "Mars", "name": ""})
    yield Call("PATCH", "/api/me", {"timezone": "Asia/Tokyo", "email": "x"})
    yield Call("GET", "/api/invoices?overdue=true")
    yield Call("GET", "/api/tasks/overdue")
    yield Call("GET", "/api/reports/sales?from=2026-03-01&to=2026-03-01")
    for language in ("pt-BR", "en", "pt", None):
        yield Call("PATCH", "/api/me", {"language": language})
    yield Call("PATCH", "/api/me", {"timezone": None})
    yield Call("PATCH", "/api/me", {"name": "Ana"})
    yield Call("GET", "/api/me", who="bia")
    yield Call("GET", "/api/keys")
    yield Call("POST", "/api/auth/signup", {"email": "x"})
    rui = {"email": "Rui@Example.com", "password": "correct horse battery", "name": "Rui Costa"}
    for change in (
        {"email": None}, {"email": 5}, {"password": "short"}, {"password": "x" * 129},
        {"password": "TrustNo1"}, {"password": rui["email"]}, {"password": None}, {"name": " "},
        {"name": None}, {"timezone": "localtime"}, {"timezone": None},
        {"timezone": "../etc/passwd"}, {"admin": True}, {"email": "RUI@example.com"},
        {"email": "t@example.com", "timezone": "Asia/Tokyo"},
    ):  # fmt: skip
        yield Call("POST", "/api/auth/signup", rui | change, "nobody")
    signed = {"email": " rui@example.COM", "password": rui["password"]}
    yield Call("POST", "/api/auth/token", signed, "nobody")
    for who in ("reader", "nobody"):
        yield Call("PATCH", "/api/me", {}, who)
    for change in ({"timezone": "america/sao_paulo"}, {"timezone": 3}):
        yield Call("PATCH", "/api/me", change)
    yield Call("POST", "/api/auth/token", {"email": "nobody@example.com"})
    yield Call("POST", "/api/auth/token", {"email": "nobody@example.com", "password": "wrong"})
    for raw in (
        b"{", b"[]", b'{"email":1,"password":"x"}', b'{"email":"a@b.c","password":"\\u0000"}',
        b'{"email":"a@b.c","password":"\\ud800"}',
        b'{"email":"a@b.c","password":"' + b"x" * 200 + b'"}',
    ):  # fmt: skip
        yield Call("POST", "/api/auth/token", raw=raw, headers={"Content-Type": JSON})
    yield Call("GET", "/api/keys", who="token")
    yield Call("POST", "/api/keys", {"name": "", "scopes": [], "expiresAt": "x"}, who="token")
    yield Call("POST", "/api/keys", {"name": "K", "expiresAt": "2026-11-01"}, who="token")
    yield Call("DELETE", f"/api/keys/{NOWHERE}", who="token")
    yield Call("GET", "/api/me", who="token")
    yield Call("DELETE", "/api/auth/token", who="ana")
    yield Call("GET", "/api/webhooks")
    yield Call("GET", "/api/events?limit=3")
    yield Call("GET", "/api/events?types=deal.updated,x")
    yield Call("GET", "/api/events?after=x")
    yield Call("GET", f"/api/events?after={NOWHERE}")


def _ends() -> Iterator[Call]:
    yield Call("DELETE", "/api/companies/{companies}", headers={"If-Match": '"1"'})
    yield Call("DELETE", "/api/companies/{companies}", who="bia")
    yield Call("DELETE", "/api/companies/{companies}")
    yield Call("DELETE", "/api/companies/{companies}")
    yield Call("GET", "/api/contacts/{contacts}")
    yield Call("DELETE", "/api/contacts/{contacts}", who="reader")
    yield Call("DELETE", "/api/contacts/{contacts}")
    yield Call("GET", "/api/deals/{deals}")
    yield Call("DELETE", "/api/deals/{deals}", who="writer")
    yield Call("DELETE", "/api/tasks/{tasks}")
    yield Call("DELETE", "/api/quotes/{quotes}")
    for plural in FULL:
        yield Call("GET", f"/api/{plural}")
    changeable = {entry.resource.plural: entry.resource.changeable for entry in CATALOGUE}
    for plural, whole in FULL.items():
        # What null clears, and what it cannot clear.
        body = {
            name: value
            for name, value in whole.items()
            if name not in ONCE and not re.match(r"(\[')?\{\w", str(value))
        }
        yield Call("POST", f"/api/{plural}", body | REFERRED.get(plural, {}), save="cleared")
        for name in changeable[plural]:
            yield Call("PUT", f"/api/{plural}/{{cleared}}", {name: None})


@pytest.mark.slow
async def test_every_call_gets_its_recorded_response(tmp_path: Path) -> None:
    await compare(tmp_path, "calls", OPEN, calls)
