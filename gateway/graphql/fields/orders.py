"""Resolves the checkout and orders."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from msgspec import json

from gateway.domain.sales import document_lines, pix
from gateway.domain.storefront.checkouts import form
from gateway.domain.storefront.checkouts.checkout import checkout
from gateway.domain.storefront.checkouts.repeats import Tokens
from gateway.domain.storefront.orders import own_orders
from gateway.graphql import connections
from gateway.graphql.fields.cart import percent, visitor_of, warning
from gateway.graphql.ids import global_id
from gateway.graphql.visit import Args, FieldResolver, Resolver, Visit
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.values import dates
from gateway.server.app_keys import CONFIG, KEYRING


async def check_out(visit: Visit, sent: Args) -> dict[str, Any]:
    """Order the cart of the visitor, who has a new one from then on."""
    visitor = await visitor_of(visit, sent["hostname"])
    app = visit.request.app
    days = app[CONFIG].storefront.order_days
    new = Tokens(_access(visit), visit.cart_token(visitor.store))
    done = await visit.write(checkout, visitor, form.read(sent), new, app[KEYRING], days)
    if isinstance(done, Refusal):
        raise done
    if visitor.customer_id is None or done.tokens is new:
        token = done.tokens.cart
        if token is not None and token != visitor.cart_token:
            visit.cookies.set_cart(token, visitor.store["cookie_same_site"])
    order = shown(visitor.store, done.order)
    return {
        "order": {**order, "accessToken": done.tokens.access},
        "payment": order["payment"],
        "warnings": [warning(warn) for warn in done.warnings],
    }


async def cancel(visit: Visit, sent: Args) -> dict[str, Any]:
    """Cancel an order of the visitor."""
    visitor = await visit.visitor(sent["hostname"])
    done = await visit.write(own_orders.cancel, visitor, sent["number"], sent.get("accessToken"))
    return {"order": shown(visitor.store, done)}


async def order(visit: Visit, args: Args) -> dict[str, Any] | None:
    """Return an order of the visitor."""
    visitor = await visit.visitor(args["hostname"])
    token = args.get("accessToken")
    found = await visit.read(own_orders.one, visitor, args["number"], token)
    return None if found is None else shown(visitor.store, found)


async def orders(visit: Visit, args: Args) -> dict[str, Any]:
    """Return a page of the customer's orders."""
    wanted = connections.stretch(args)
    visitor = await visit.visitor(args["hostname"])
    customer_id = visitor.must_be_customer()

    async def count() -> int:
        return await visit.read(own_orders.count, visitor, customer_id)

    found = await visit.read(own_orders.stretch, visitor, customer_id, wanted)
    return connections.connection(
        found, wanted, count, show=lambda record: shown(visitor.store, record)
    )


def shown(store: Record, found: Record) -> dict[str, Any]:
    """Return an order in the form of the schema."""
    coupon, option, address = (
        None if found[column] is None else json.decode(found[column])
        for column in ("coupon", "shipping_option", "address")
    )
    if coupon is not None:
        coupon["discountPercentage"] = percent(coupon.get("discountPercentage"))
    return {
        "id": global_id("Order", found.id),
        "number": found["number"],
        "status": found["status"],
        "items": [
            {
                "productId": global_id("Product", line.product_id or ""),
                "title": line.description,
                "price": line.unit_price,
                "quantity": line.quantity // 1000,
            }
            for line in document_lines.read(found["items"])
        ],
        "totalPrice": found["subtotal"],
        "totalDiscount": found["discount"],
        "totalShipping": found["shipping"],
        "total": found["total"],
        "coupon": coupon,
        "shipping": option,
        "name": found["name"],
        "email": found["email"],
        "address": address,
        "notes": found["notes"],
        "payment": _payment(store, found),
        "createdAt": dates.show(found["created_at"]),
        "expiresAt": dates.show(found["expires_at"]),
        "paidAt": _time(found["paid_at"]),
        "canceledAt": _time(found["canceled_at"]),
    }


def _payment(store: Record, found: Record) -> dict[str, Any]:
    """Return how to pay an order; only a pending one has a Pix code."""
    method, key, code = found["payment_method"], store["pix_key"], None
    if method == "pix" and key is not None and found["status"] == "pending":
        code = pix.code(key, store["name"], found["total"], found["number"])
    return {"method": method, "pixCode": code}


def _time(kept: int | None) -> str | None:
    return None if kept is None else dates.show(kept)


def _access(visit: Visit) -> str:
    return urlsafe_b64encode(visit.token(32)).rstrip(b"=").decode()


QUERIES: Mapping[str, Resolver] = {"order": order, "orders": orders}
MUTATIONS: Mapping[str, Resolver] = {"checkout": check_out, "orderCancel": cancel}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {}
