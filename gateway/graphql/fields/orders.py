"""Resolves the checkout and orders."""

from collections.abc import Awaitable, Mapping
from typing import Any

from msgspec import json

from gateway.domain.sales import document_lines, pix
from gateway.domain.storefront.checkouts.checkout import Refused
from gateway.domain.storefront.orders import own_orders
from gateway.domain.storefront.payments import card_pages, payment_secrets
from gateway.graphql import connections
from gateway.graphql.fields.cart import percent, shown_cart, warning
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.record import Record
from gateway.records.values import dates
from gateway.records.values.global_ids import global_id
from gateway.server.app_keys import KEYRING


async def check_out(visit: RequestContext, sent: Args) -> dict[str, Any]:
    """Order the cart of the visitor, who has a new one from then on."""
    visitor = await visit.shopper(sent["hostname"])
    await visit.begin_write()
    done = await visit.storefront.checkouts.order(visitor, visit.address, sent)
    if isinstance(done, Refused):
        done.refusal.facts["shopping_cart"] = shown_cart(done.cart, visitor)
        raise done.refusal
    if done.cart_token is not None:
        visit.cookies.set_cart(done.cart_token, visitor.store["cookie_same_site"])
    order = shown(visitor.store, done.order)
    return {
        "order": {**order, "accessToken": done.tokens.access},
        "payment": order["payment"],
        "warnings": [warning(warn, visitor) for warn in done.warnings],
    }


async def cancel(visit: RequestContext, sent: Args) -> dict[str, Any]:
    """Cancel an order of the visitor."""
    visitor = await visit.visitor(sent["hostname"])
    done = await visit.write(own_orders.cancel, visitor, sent["number"], sent.get("accessToken"))
    return {"order": shown(visitor.store, done)}


async def order(visit: RequestContext, args: Args) -> dict[str, Any] | None:
    """Return an order of the visitor."""
    visitor = await visit.visitor(args["hostname"])
    token = args.get("accessToken")
    order = await visit.read(own_orders.one, visitor, args["number"], token)
    return None if order is None else shown(visitor.store, order)


async def orders(visit: RequestContext, args: Args) -> dict[str, Any]:
    """Return a page of the customer's orders."""
    request = connections.slice_request(args)
    visitor = await visit.visitor(args["hostname"])
    customer_id = visitor.must_be_customer()

    async def count() -> int:
        return await visit.read(own_orders.count, visitor, customer_id)

    page = await visit.read(own_orders.slice_of, visitor, customer_id, request)
    return connections.connection(
        page, request, count, show=lambda record: shown(visitor.store, record)
    )


def shown(store: Record, order: Record) -> dict[str, Any]:
    """Return an order in the form of the schema."""
    coupon, option, address = (
        None if order[column] is None else json.decode(order[column])
        for column in ("coupon", "shipping_option", "address")
    )
    is_by_card = order["payment_method"] == "card"
    if coupon is not None:
        coupon["discountPercentage"] = percent(coupon.get("discountPercentage"))
    return {
        "id": global_id("Order", order.id),
        "number": order["number"],
        "status": order["status"],
        "items": order["items"],
        "totalPrice": order["subtotal"],
        "totalDiscount": order["discount"],
        "totalShipping": order["shipping"],
        "total": order["total"],
        "coupon": coupon,
        "shipping": option,
        "name": order["name"],
        "email": order["email"],
        "address": address,
        "notes": order["notes"],
        "payment": _payment(store, order),
        "checkoutUrl": (store, order) if is_by_card and card_pages.has_page(store, order) else None,
        "createdAt": dates.show(order["created_at"]),
        "expiresAt": dates.show(order["expires_at"]),
        "paidAt": _time(order["paid_at"]),
        "canceledAt": _time(order["canceled_at"]),
    }


def _payment(store: Record, order: Record) -> dict[str, Any]:
    """Return how to pay an order; only a pending one has a Pix code."""
    method, key, code = order["payment_method"], store["pix_key"], None
    if method == "pix" and key is not None and order["status"] == "pending":
        code = pix.code(key, store["name"], order["total"], order["number"])
    return {"method": method, "pixCode": code}


def _checkout_url(
    order: Mapping[str, Any], visit: RequestContext, args: Args
) -> Awaitable[Any] | None:
    """Return the page for an order by card; null while its store has no payment secret."""
    page: tuple[Record, Record] | None = order["checkoutUrl"]
    return None if page is None else _page(visit, *page)


async def _page(visit: RequestContext, store: Record, order: Record) -> str | None:
    sealed = await visit.loaders.load(payment_secrets.current, store.id)
    if sealed is None:
        return None
    secret = payment_secrets.opened(sealed, store.id, visit.request.app[KEYRING])
    return None if secret is None else card_pages.address(store, order, secret)


def _time(time: int | None) -> str | None:
    return None if time is None else dates.show(time)


QUERIES: Mapping[str, Resolver] = {"order": order, "orders": orders}
MUTATIONS: Mapping[str, Resolver] = {"checkout": check_out, "orderCancel": cancel}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {
    "Order": {
        "checkoutUrl": _checkout_url,
        "items": lambda order, visit, args: document_lines.read(order["items"]),
    },
    # Not with their order: a page of orders has up to ten thousand lines.
    "OrderItem": {
        "productId": lambda line, visit, args: global_id("Product", line.product_id or ""),
        "title": lambda line, visit, args: line.description,
        "price": lambda line, visit, args: line.unit_price,
        "quantity": lambda line, visit, args: line.quantity // 1000,
    },
}
