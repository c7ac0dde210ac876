"""Handles the calls by which the adapter of a payment provider reports payments of a store."""

from typing import Literal

from aiohttp import web
from msgspec import Struct

from gateway.domain.accounts.networks import share_of
from gateway.domain.storefront.payments import call_signature, payment_secrets, reported_payments
from gateway.domain.storefront.payments.call_signature import Signature
from gateway.domain.storefront.payments.reported_payments import PAYMENT
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.rest.body import draft_of, read_body, respond
from gateway.rest.document import shapes
from gateway.rest.document.describe import id_of
from gateway.rest.document.operations import Parameter, operation
from gateway.server.app_keys import DB, KEYRING
from gateway.server.http.client_address import CLIENT
from gateway.server.http.rate_limits import LIMITS
from outbox.database.transaction import belongs_to
from outbox.ids import is_id

Status = Literal["pending", "paid", "canceled", "expired"]
_TEXT = {"type": "string"}


class PaymentReport(Struct, frozen=True, rename="camel"):
    """What became of a reported payment; `late` when the order had ended before it."""

    order_number: str
    order_status: Status
    reference: str
    late: bool


@operation(
    "reportPayment", "Payments", "Report a payment of an order",
    shapes.struct(PaymentReport("ORD-000001", "paid", "ch_2f6a91", late=False)),
    headers=("X-Ignored-Fields",), credential="none", body=shapes.new(PAYMENT),
    description="For the adapter of a payment provider. The store's payment secret signs the call "
    "as Carteiro signs its webhooks (Standard Webhooks): `webhook-timestamp` may differ from our "
    "clock by 5 minutes. A repeat with the same `reference` changes nothing.",
    parameters=(
        id_of("store"),
        Parameter(
            "webhook-id", _TEXT, "Any id of the call.", "ch_2f6a91", "header",
        ),
        Parameter(
            "webhook-timestamp", _TEXT, "When the call was signed, in seconds since 1970.",
            "1795271400", "header",
        ),
        Parameter(
            "webhook-signature", _TEXT,
            "`v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`, keyed with the bytes behind "
            "`whsec_`; several with spaces between them.",
            "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=", "header",
        ),
    ),
    refusals=(
        "unauthenticated", "conflict", "rate_limited", "unavailable",
    ),
)  # fmt: skip
async def report(request: web.Request) -> web.Response:
    """POST /api/payments/callback/{id}: record a payment that a provider reports."""
    request.app[LIMITS].call("write", f"payments {share_of(request[CLIENT].address)}")
    store_id = request.match_info["id"].lower()
    database, ring = request.app[DB], request.app[KEYRING]
    account = None
    if is_id(store_id):
        account = await database.read(payment_secrets.account_of, store_id, ring)
    if account is None:
        raise Refusal("not_found", "There is no store with this id.")
    if not account.secrets:
        raise Refusal(
            "unauthenticated", "This store has no payment secret; create one in the console."
        )
    belongs_to(account.owner_id)
    body = await read_body(request)
    signature = Signature(
        *(_only(request, f"webhook-{name}") for name in ("id", "timestamp", "signature"))
    )
    call_signature.must_be_signed(signature, body, account.secrets, database.clock.wall())
    draft = draft_of(request, PAYMENT, body, creating=True)
    actor = Actor(account.owner_id, "system", zone=account.zone, cause="payment")
    done = await database.write(reported_payments.report, actor, store_id, draft)
    order = done.order
    result = PaymentReport(
        order["number"], order["status"], draft.values["reference"], late=done.late
    )
    return respond(result, 200, draft)


def _only(request: web.Request, name: str) -> str:
    """Return the header of this name; empty when it is missing or repeated."""
    lines = request.headers.getall(name, [])
    return lines[0] if len(lines) == 1 else ""
