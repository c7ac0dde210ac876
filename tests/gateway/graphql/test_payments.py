"""How a store is paid: its methods, the page for cards, and the calls of a payment provider."""

import asyncio
import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64decode
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.domain.sales import order_verbs
from gateway.server.config import Config, Limits
from outbox.database.transaction import Database, Tx
from tests.support import orders
from tests.support.checkouts import bought
from tests.support.provider import Adapter, adapter, signature, stage
from tests.support.shop import Shop, opened

PAGE = "https://pay.example/{orderId}?n={orderNumber}&token={token}"


async def change(shop: Shop, **values: Any) -> Any:
    answer = await shop.owner.put(f"/api/stores/{shop.store['id']}", values)
    assert answer.status == 200, answer.text
    return answer.body


async def kept(shop: Shop, number: str) -> Any:
    """Return an order as its owner sees it."""
    [found] = (await shop.owner.get(f"/api/orders?number={number}")).body["data"]
    return found


async def invoice_of(shop: Shop, order: Any) -> Any:
    return (await shop.owner.get(f"/api/invoices/{order['invoiceId']}")).body


async def by_card(shop: Shop) -> Any:
    """Return a new order of R$ 60 by card."""
    _, order = await bought(shop, 2, paymentMethod="card")
    return order


async def expire(shop: Shop, number: str) -> None:
    """Let an order expire, as the duty does."""

    async def pass_time(tx: Tx) -> None:
        await tx.run("update orders set expires_at = $1 where number = $2", tx.now - 1, number)

    await shop.db.write(pass_time)
    assert await shop.db.write(order_verbs.expire, 1) == 1


def claims_of(token: str, secret: str) -> Any:
    """Check a token by hand, as any library for JWT does, and return its claims."""
    head, _, theirs = token.rpartition(".")
    ours = hmac.new(secret.encode(), head.encode(), hashlib.sha256).digest()
    assert urlsafe_b64decode(theirs + "=") == ours
    header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in head.split("."))
    assert header == {"alg": "HS256", "typ": "JWT"}
    return claims


async def test_the_page_for_a_card(shop: Shop) -> None:
    await change(shop, checkoutUrl=PAGE)
    browser, order = await bought(shop, 2, paymentMethod="card")
    asked = (
        "query ($h: String!, $n: String!, $t: String)"
        " { order(hostname: $h, number: $n, accessToken: $t) { checkoutUrl } }"
    )
    variables = {"h": shop.hostname, "n": order["number"], "t": order["accessToken"]}

    async def page() -> Any:
        return (await browser.send(asked, variables)).data["order"]["checkoutUrl"]

    # Without a secret there is nothing that could sign.
    assert await page() is None
    secret = await stage(shop)
    address = await page()
    record = await kept(shop, order["number"])
    assert urlsplit(address).netloc == "pay.example"
    assert urlsplit(address).path == f"/{record['id']}"
    query = parse_qs(urlsplit(address).query)
    assert query["n"] == [order["number"]]
    claims = claims_of(query["token"][0], secret)
    assert claims == {
        "iss": "carteiro", "aud": shop.store["id"], "sub": record["id"],
        "orderNumber": order["number"], "amount": 60, "currency": "BRL",
        "iat": claims["iat"], "exp": claims["exp"],
    }  # fmt: skip
    assert claims["exp"] - claims["iat"] == 3 * 86_400
    # A staged secret signs calls, and no tokens yet.
    await stage(shop)
    assert await page() == address
    assert (await orders.pay(shop.owner, record)).status == 200
    assert await page() is None
    _, by_pix = await bought(shop, paymentMethod="pix")
    variables |= {"n": by_pix["number"], "t": by_pix["accessToken"]}
    assert await page() is None


async def test_a_purchase_is_paid_by_the_call_of_a_provider(shop: Shop) -> None:
    provider = await adapter(shop)
    order = await by_card(shop)
    before = len(await shop.api.events())
    done = await provider.report(order["number"], 60)
    assert (done.status, done.body) == (
        200,
        {"orderNumber": order["number"], "orderStatus": "paid", "reference": "ch_1", "late": False},
    )
    record = await kept(shop, order["number"])
    invoice = await invoice_of(shop, record)
    assert (record["status"], invoice["status"]) == ("paid", "paid")
    assert (invoice["method"], invoice["reference"]) == ("card", "ch_1")
    names = [name for name, _ in (await shop.api.events())[before:]]
    assert sorted(names) == ["deal.updated", "invoice.paid", "order.paid"]
    # The provider's retry, and a second one at the same time.
    again = await asyncio.gather(*(provider.report(order["number"], 60) for _ in range(2)))
    assert [one.body for one in again] == [done.body, done.body]
    assert len(await shop.api.events()) == before + 3
    assert "latePayments" not in await invoice_of(shop, record)


async def test_calls_at_once_pay_once(shop: Shop) -> None:
    provider = await adapter(shop)
    order = await by_card(shop)
    before = len(await shop.api.events())
    answers = await asyncio.gather(*(provider.report(order["number"], 60) for _ in range(5)))
    assert {(one.status, one.body["late"]) for one in answers} == {(200, False)}
    assert len(await shop.api.events()) == before + 3


@pytest.mark.parametrize("end", ["canceled", "expired"])
async def test_a_late_payment_is_kept_and_flagged(shop: Shop, end: str) -> None:
    provider = await adapter(shop)
    order = await by_card(shop)
    record = await kept(shop, order["number"])
    if end == "canceled":
        assert (await orders.cancel(shop.owner, record)).status == 200
    else:
        await expire(shop, order["number"])
    before = len(await shop.api.events())
    for _ in range(2):
        done = await provider.report(order["number"], 60)
        assert (done.status, done.body["late"], done.body["orderStatus"]) == (200, True, end)
    record = await kept(shop, order["number"])
    invoice = await invoice_of(shop, record)
    assert (record["status"], invoice["status"]) == (end, "canceled")
    [late] = invoice["latePayments"]
    assert (late["reference"], late["amount"]) == ("ch_1", 60)
    assert late["receivedAt"] == record["latePaymentAt"]
    assert [name for name, _ in (await shop.api.events())[before:]] == ["invoice.updated"]
    flagged = (await shop.owner.get("/api/orders?latePayment=true")).body["data"]
    assert [one["id"] for one in flagged] == [record["id"]]
    assert (await shop.owner.get("/api/orders?latePayment=false")).body["data"] == []
    # Another one for the same order is kept, too.
    assert (await provider.report(order["number"], 60, "ch_2")).body["late"] is True
    assert len((await invoice_of(shop, record))["latePayments"]) == 2


async def test_a_payment_and_a_cancellation_at_once(shop: Shop) -> None:
    """One of them comes first, and the payment is kept either way."""
    provider = await adapter(shop)
    for number in range(4):
        order = await by_card(shop)
        record = await kept(shop, order["number"])
        reported, canceled = await asyncio.gather(
            provider.report(order["number"], 60, f"ch_{number}"), orders.cancel(shop.owner, record)
        )
        record = await kept(shop, order["number"])
        invoice = await invoice_of(shop, record)
        late = reported.body["late"]
        assert (reported.status, canceled.status) == (200, 200 if late else 409)
        assert (record["status"], invoice["status"]) == (
            ("canceled",) * 2 if late else ("paid",) * 2
        )
        assert ("latePayments" in invoice, "latePaymentAt" in record) == (late, late)


async def test_a_payment_that_the_owner_entered_is_no_second_one(shop: Shop) -> None:
    provider = await adapter(shop)
    order = await by_card(shop)
    record = await kept(shop, order["number"])
    paid = {"method": "card", "reference": "ch_1"}
    await shop.owner.post(f"/api/invoices/{record['invoiceId']}/pay", paid)
    done = await provider.report(order["number"], 60)
    assert (done.body["late"], done.body["orderStatus"]) == (False, "paid")
    assert "latePayments" not in await invoice_of(shop, record)


@pytest.mark.parametrize(
    ("body", "status", "faults"),
    [
        ({"amount": 59.99}, 400, {"amount": "disagrees"}),
        ({"amount": 60.01}, 400, {"amount": "disagrees"}),
        ({"amount": "60"}, 400, {"amount": "wrong_type"}),
        ({"amount": 60.001}, 400, {"amount": "too_precise"}),
        ({"amount": -60}, 400, {"amount": "out_of_range"}),
        ({"orderNumber": "ORD-000009"}, 404, {"orderNumber": "unknown"}),
        ({"orderNumber": None}, 400, {"orderNumber": "not_nullable"}),
        ({"reference": ""}, 400, {"reference": "too_short"}),
        ({"reference": "a\x00b"}, 400, None),
        ({"reference": "r" * 201}, 400, {"reference": "too_long"}),
    ],
)
async def test_a_call_with_a_fault_changes_nothing(
    shop: Shop, body: Any, status: int, faults: Any
) -> None:
    provider = await adapter(shop)
    order = await by_card(shop)
    sent = {"orderNumber": order["number"], "amount": 60, "reference": "ch_1", **body}
    refused = await provider.send(sent)
    assert refused.status == status, refused.text
    if faults is not None:
        assert refused.faults == faults
    assert (await kept(shop, order["number"]))["status"] == "pending"
    assert (await provider.report(order["number"], 60)).status == 200


async def test_a_reference_belongs_to_one_payment(shop: Shop) -> None:
    provider = await adapter(shop)
    first, second = await by_card(shop), await by_card(shop)
    assert (await provider.report(first["number"], 60)).status == 200
    for number, amount in ((second["number"], 60), (first["number"], 59)):
        refused = await provider.report(number, amount)
        assert (refused.status, refused.faults) == (409, {"reference": "taken"})
    assert (await kept(shop, second["number"]))["status"] == "pending"


async def test_one_reference_for_two_orders_at_once(shop: Shop) -> None:
    provider = await adapter(shop)
    numbers = [(await by_card(shop))["number"] for _ in range(2)]
    answers = await asyncio.gather(*(provider.report(number, 60) for number in numbers))
    assert sorted(one.status for one in answers) == [200, 409]
    states = [(await kept(shop, number))["status"] for number in numbers]
    assert sorted(states) == ["paid", "pending"]


async def test_the_order_of_another_store_is_unknown(shop: Shop) -> None:
    provider = await adapter(shop)
    body = {"hostname": "other.example", "name": "Other"}
    store = (await shop.owner.post("/api/stores", body)).body
    other = Shop(shop.api, shop.owner, store)
    order = await by_card(other)
    await other.close()
    assert (await provider.report(order["number"], 60)).status == 404
    assert (await kept(shop, order["number"]))["status"] == "pending"


async def test_a_call_must_be_signed_now_and_by_this_store(shop: Shop) -> None:
    provider = await adapter(shop)
    order = await by_card(shop)
    body = {"orderNumber": order["number"], "amount": 60, "reference": "ch_1"}
    raw = json.dumps(body).encode()
    now = str(int(time.time()))
    theirs = signature("whsec_" + "A" * 43 + "=", "msg_1", now, raw)
    right = signature(provider.secret, "msg_1", now, raw)
    cases: list[dict[str, Any]] = [
        {"webhook_signature": None}, {"webhook_timestamp": None}, {"webhook_id": None},
        {"webhook_signature": theirs}, {"webhook_signature": "v1,"}, {"webhook_signature": "x"},
        # Of other bytes, of another id, of another time; in another version.
        {"webhook_signature": signature(provider.secret, "msg_1", now, raw + b" ")},
        {"webhook_id": "msg_2"}, {"webhook_timestamp": str(int(now) - 7)},
        {"webhook_timestamp": "soon"}, {"webhook_timestamp": "-1"}, {"webhook_timestamp": "1" * 40},
        {"webhook_signature": right.replace("v1,", "v2,"), "webhook_timestamp": now},
        {"webhook_signature": " ".join([theirs] * 10 + [right]), "webhook_timestamp": now},
        {"ago": 301}, {"ago": -302},
    ]  # fmt: skip
    for case in cases:
        refused = await provider.send(body, **case)
        assert (refused.status, refused.body["code"]) == (401, "unauthenticated"), case
    assert (await kept(shop, order["number"]))["status"] == "pending"
    both: dict[str, Any] = {"webhook_signature": f"{theirs} {right}", "webhook_timestamp": now}
    assert (await provider.send(body, **both)).status == 200
    # Up to five minutes are a clock that differs.
    assert (await provider.send(body, ago=295)).status == 200


async def test_a_store_without_a_secret_and_no_store(shop: Shop) -> None:
    provider = Adapter(shop, "whsec_" + "A" * 43 + "=")
    refused = await provider.report("ORD-000001", 60)
    assert (refused.status, refused.body["code"]) == (401, "unauthenticated")
    assert "create one in the console" in refused.body["error"]
    for one in ("0" * 24, "x"):
        path = f"/api/payments/callback/{one}"
        assert (await shop.api.nobody.post(path, {})).status == 404
    await stage(shop)
    assert (await shop.owner.delete(f"/api/stores/{shop.store['id']}")).status == 200
    assert (await provider.report("ORD-000001", 60)).status == 404


async def test_a_call_has_a_bound(shop: Shop) -> None:
    provider = await adapter(shop)
    refused = await provider.send(None, data=b" " * 65_537)
    assert refused.status == 413
    refused = await provider.send({}, Content_Encoding="gzip")
    assert refused.status == 415
    refused = await provider.send({}, Content_Type="text/plain")
    assert refused.status == 415


async def test_calls_of_an_address_have_a_limit(still: Database) -> None:
    async with opened(still, Config(limits=Limits(write_per_second=1, burst=5))) as shop:
        path = f"/api/payments/callback/{shop.store['id']}"
        statuses = [(await shop.api.nobody.post(path, {})).status for _ in range(8)]
        assert statuses[:5] == [401] * 5
        assert statuses[-1] == 429
        # The limit of the owner is another one.
        answer = await shop.owner.put(f"/api/stores/{shop.store['id']}", {"name": "Tea"})
        assert answer.status == 200
