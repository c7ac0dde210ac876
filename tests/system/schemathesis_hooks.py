"""Corrections to generated requests that JSON Schema cannot express; schemathesis loads this file.

Only requests that should be valid are changed, so that their references exist and they reach the
code behind the checks. The one check of responses is that the code of an error has its status, as
the errors of all statuses have the same schema.
"""

from __future__ import annotations

import itertools
import os
from typing import Any

import requests
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, CheckContext, HookContext, Response

from gateway.rest.errors import STATUS

URL = os.environ["GENERATED_URL"]
KEY = os.environ["GENERATED_KEY"]
EMAIL = os.environ["GENERATED_EMAIL"]
SIGN_IN = {"email": EMAIL, "password": os.environ["GENERATED_PASSWORD"]}
SECONDS = 30
CNPJS = ("11.222.333/0001-81", "12ABC34501DE35", "00000000000191")
KEPT = "0190a0000000000000000000"
"""An id from before all kept events: the feed begins at its start."""
CURSOR = "YzAuMDE5MGEwMDAwMDAwMDAwMDAwMDAwMDAw"
LINE = {"description": "Coffee", "quantity": 2, "unitPrice": 10}
MAKES: dict[str, dict[str, Any]] = {
    "contacts": {"name": "Bruno"},
    "companies": {"name": "Acme"},
    "deals": {"title": "Supply", "value": 1},
    "tasks": {"title": "Call"},
    "products": {"name": "Tea", "price": 1},
    "quotes": {"items": [LINE]},
    "invoices": {"items": [LINE], "dueDate": "2030-01-01"},
}
REFERENCES = {
    "companyId": "companies", "contactId": "contacts", "dealId": "deals",
    "productId": "products", "quoteId": "quotes",
}  # fmt: skip
RELATED = {"contact": "contacts", "company": "companies", "deal": "deals"}

schemathesis.openapi.format("cnpj", st.sampled_from(CNPJS))
schemathesis.openapi.format("cursor", st.just(CURSOR))

_count = itertools.count(1)
_session = requests.Session()
_known: dict[str, str] = {}


def made(plural: str, *, anew: bool = False) -> str:
    """Return an existing record: the previous one, unless it may be deleted."""
    if plural == "activities":
        body: dict[str, Any] = {
            "type": "note", "description": "x", "relatedTo": made("contacts"),
            "relatedType": "contact",
        }  # fmt: skip
    else:
        body = MAKES[plural]
    if anew or plural not in _known or not _is_there(plural, _known[plural]):
        answer = _session.post(
            f"{URL}/api/{plural}", json=body, headers={"X-API-Key": KEY}, timeout=SECONDS
        )
        answer.raise_for_status()
        record_id: str = answer.json()["id"]
        if anew:
            return record_id
        _known[plural] = record_id
    return _known[plural]


def _is_there(plural: str, record_id: str) -> bool:
    answer = _session.head(
        f"{URL}/api/{plural}/{record_id}", headers={"X-API-Key": KEY}, timeout=SECONDS
    )
    return answer.status_code == 200


@schemathesis.check
def error_code_has_its_status(ctx: CheckContext, response: Response, case: Case[Any]) -> None:
    """Fail when the body of an error has the code of another status."""
    if response.status_code < 400:
        return
    body = response.json()
    status = STATUS[body["code"]] if "code" in body else response.status_code
    assert status == response.status_code, f"{body['code']} is no code of {response.status_code}"


@schemathesis.hook
def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:
    """Make references point to existing records, and dependent values agree."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive:
        return
    _place(case, stateful=meta.phase.name == "stateful")
    _query(case)
    _headers(case)
    if isinstance(case.body, dict):
        body = _without_nul(case.body)
        _refer(body)
        _agree(case.operation.path, case.method, body)
        case.body = body


def _place(case: Case[Any], *, stateful: bool) -> None:
    """Put a record's id into the path. Stateful runs follow the ids of earlier responses."""
    plural = case.operation.path.split("/")[2]
    if stateful or "id" not in (case.path_parameters or {}) or plural not in (*MAKES, "activities"):
        return
    case.path_parameters["id"] = made(plural, anew=case.method == "DELETE" or next(_count) % 2 == 0)


def _query(case: Case[Any]) -> None:
    query = case.query or {}
    # It asks for a part of a record, and the schema is that of a whole one.
    query.pop("fields", None)
    if "cursor" in query:
        # A feed follows one order, and the cursor was made for it.
        query["cursor"] = CURSOR
        query.pop("updatedSince", None)
        query.pop("sort", None)
    if "after" in query:
        query["after"] = KEPT
    if case.operation.path.startswith("/api/reports/"):
        # The period must end after it begins, and not have too many parts.
        query.pop("to", None)
        if "from" in query:
            query["from"] = "2026-01-01"
        if "timezone" in query:
            query["timezone"] = "America/Sao_Paulo"


def _headers(case: Case[Any]) -> None:
    headers: Any = case.headers or {}
    if "Idempotency-Key" in headers:
        headers["Idempotency-Key"] = f"generated-{next(_count)}"
    if "If-Match" in headers and next(_count) % 4:
        headers["If-Match"] = "*"
    if case.method == "DELETE" and case.operation.path == "/api/auth/token":
        # Not the token that the rest of the run uses.
        answer = _session.post(f"{URL}/api/auth/token", json=SIGN_IN, timeout=SECONDS)
        if headers.get("Authorization", "").startswith("Bearer cst_"):
            headers["Authorization"] = f"Bearer {answer.json()['token']}"


def _without_nul(value: Any) -> Any:
    """Remove U+0000 from all texts; the schema forbids it only in some members."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {_without_nul(name): _without_nul(member) for name, member in value.items()}
    return [_without_nul(item) for item in value] if isinstance(value, list) else value


def _refer(body: dict[str, Any]) -> None:
    for name, plural in REFERENCES.items():
        if isinstance(body.get(name), str):
            body[name] = made(plural)
    if isinstance(body.get("contactIds"), list):
        body["contactIds"] = [made("contacts")] if body["contactIds"] else []
    if "relatedTo" in body:
        # The two are one reference.
        body.setdefault("relatedType", "contact")
        body["relatedTo"] = made(RELATED[body["relatedType"]])
    elif "relatedType" in body:
        del body["relatedType"]
    for line in body.get("items") or ():
        _refer(line)


def _agree(path: str, method: str, body: dict[str, Any]) -> None:
    if isinstance(body.get("cnpj"), str):
        body["cnpj"] = CNPJS[next(_count) % len(CNPJS)]
    if isinstance(body.get("email"), str) and body["email"].find("@") > 64:
        # RFC 5321 4.5.3.1.1; the generator cannot handle a regular expression for this.
        body["email"] = EMAIL
    if isinstance(body.get("sku"), str):
        body["sku"] = f"SKU-{next(_count)}"
    if path == "/api/keys" and body.get("expiresAt"):
        body["expiresAt"] = "2090-01-01"
    if path == "/api/auth/token":
        body.update(SIGN_IN)
    if "timezone" in body:
        # The schema describes the form of a name, not the existing zones.
        body["timezone"] = "America/Sao_Paulo"
    if path.startswith("/api/deals") and body.get("lostReason") is not None:
        body["status"] = "lost"
    if path == "/api/settings/pipeline" and not body.get("stages"):
        # It cannot be strict without stages, and may have been strict before.
        body["stages"] = ["lead"]
    if path.startswith(("/api/quotes", "/api/invoices")):
        # The total is calculated here and must equal the sent total.
        for name in ("total", "discount", "shipping"):
            body.pop(name, None)
        for line in body.get("items") or ():
            line.pop("total", None)
            line.pop("discount", None)
            line["quantity"] = min(line["quantity"], 1000)
            line["unitPrice"] = min(line["unitPrice"], 1000)
        if (
            path.startswith("/api/invoices")
            and not body.get("items")
            and ("items" in body or (method == "POST" and path == "/api/invoices"))
        ):
            body["total"] = 10
        # Sent, paid or cancelled documents keep their status.
        body.pop("status", None)
