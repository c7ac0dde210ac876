"""Resolves the cart of a visitor."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway.domain.storefront.carts import changes
from gateway.domain.storefront.carts.contents import Contents, Item, Warn, current
from gateway.domain.storefront.stores import shipping
from gateway.domain.storefront.stores.shipping import Option
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.graphql.store_language import say_of
from gateway.records.errors import Fault, Refusal
from gateway.records.values import global_ids
from gateway.records.values.global_ids import global_id
from gateway.server.http.rate_limits import LIMITS

LIMITS_QUANTITIES = "2026-11-01"
"""From this date on, a quantity above the stock is limited with a warning, not refused."""


async def shopping_cart(visit: RequestContext, args: Args) -> dict[str, Any]:
    visitor = await visit.shopper(args["hostname"])
    contents = await visit.read(current, visitor)
    cart = contents.cart
    if visitor.customer_id is None and cart.id is not None and cart.stale(visit.now):
        visit.storefront.looks.used(visitor, cart)
        visit.keep_cart(visitor)
    return _showing(visit, visitor, contents)


async def add(visit: RequestContext, sent: Args) -> dict[str, Any]:
    product_id = global_ids.record_id(sent["productId"], "Product", "productId")
    quantity = sent["quantity"]
    if quantity is None:
        quantity = 1
    limiting = visit.since(LIMITS_QUANTITIES)
    return await _change(visit, sent, changes.add, product_id, quantity, limiting=limiting)


async def update(visit: RequestContext, sent: Args) -> dict[str, Any]:
    limiting = visit.since(LIMITS_QUANTITIES)
    return await _change(
        visit, sent, changes.update, sent["quantity"], limiting=limiting, **_named(sent["id"])
    )


async def remove(visit: RequestContext, sent: Args) -> dict[str, Any]:
    return await _change(visit, sent, changes.remove, **_named(sent["id"]))


async def clear(visit: RequestContext, sent: Args) -> dict[str, Any]:
    return await _change(visit, sent, changes.clear)


async def apply_coupon(visit: RequestContext, sent: Args) -> dict[str, Any]:
    visitor = await visit.visitor(sent["hostname"])
    limits, share = visit.request.app[LIMITS], visitor.address
    limits.count("coupon", share)
    guessed = False
    try:
        return await _change(visit, sent, changes.apply_coupon, sent["code"])
    except Refusal as refusal:
        guessed = refusal.code == "coupon_not_found"
        raise
    finally:
        if not guessed:
            limits.take_back("coupon", share)


async def remove_coupon(visit: RequestContext, sent: Args) -> dict[str, Any]:
    return await _change(visit, sent, changes.remove_coupon)


async def set_shipping(visit: RequestContext, sent: Args) -> dict[str, Any]:
    return await _change(visit, sent, changes.set_shipping, sent["cep"], sent.get("type"))


async def shipping_quote(visit: RequestContext, args: Args) -> Sequence[dict[str, Any]]:
    visitor = await visit.visitor(args["hostname"])
    cep, quantity = shipping.cep_of(args["cep"]), args.get("quantity")
    product_id = None
    if args.get("productId") is not None:
        product_id = global_ids.record_id(args["productId"], "Product", "productId")
    offered = await visit.read(
        changes.quote, visitor, cep, product_id, 1 if quantity is None else quantity
    )
    return [_option(option) for option in offered]


async def _change(
    visit: RequestContext,
    sent: Args,
    unit: Callable[..., Awaitable[Contents]],
    *args: Any,
    **kwargs: Any,
) -> dict[str, Any]:
    """Run a change of the visitor's cart and return its payload."""
    visitor = await visit.shopper(sent["hostname"])
    changed = await visit.write(unit, visitor, *args, **kwargs)
    if visitor.customer_id is None:
        # The cookie lasts as long as the cart does.
        visit.keep_cart(visitor)
    cart = _showing(visit, visitor, changed)
    return {"shoppingCart": cart, "warnings": cart["warnings"]}


def _named(text: str) -> dict[str, str]:
    """Return the id of a line, or of a product, from its global id. Raises validation_error."""
    kind, record_id = global_ids.parse(text) or ("", "")
    names = {"ShoppingCartProduct": "line_id", "Product": "product_id"}
    if kind not in names:
        message = "Send the id of a line, or the global id of its product."
        fault = Fault("id", "invalid_id", message)
        raise Refusal("validation_error", f"id: {message}", faults=[fault])
    return {names[kind]: record_id}


def _showing(visit: RequestContext, visitor: Shopper, contents: Contents) -> dict[str, Any]:
    """Return a cart in the form of the schema.

    When its total is not the one that the visitor agreed to, a response with the total is noted.
    The total is shown by `total`, or by the three amounts that it consists of; a lower one by
    whatever shows an amount, because the visitor then expects no higher one.
    """
    shown, cart, looks = shown_cart(contents, visitor), contents.cart, visit.storefront.looks
    agreed = contents.total if cart.id is None else looks.agreed(visitor, cart)
    if contents.total == agreed:
        return shown
    is_lower, selected = contents.total < agreed, set[str]()

    def noting(name: str, value: Any) -> Callable[..., Any]:
        def resolve(_: Any) -> Any:
            selected.add(name)
            if is_lower or "total" in selected or selected.issuperset(_PARTS):
                looks.showed(visitor, cart, contents.total)
            return value

        return resolve

    names = _AMOUNTS if is_lower else ("total", *_PARTS)
    return shown | {name: noting(name, shown[name]) for name in names}


_PARTS = ("totalPrice", "totalDiscount", "totalShipping")
_AMOUNTS = ("total", *_PARTS, "products", "coupon", "shippingOptions", "warnings")
"""The fields of a cart that show an amount."""


def shown_cart(contents: Contents, visitor: Shopper) -> dict[str, Any]:
    """Return a cart in the form of the schema."""
    coupon, cart = contents.coupon, contents.cart
    return {
        "id": global_id("ShoppingCart", cart.id or cart.new_id),
        "products": [_line(item) for item in contents.items],
        "totalPrice": contents.total_price,
        "totalQuantity": contents.total_quantity,
        "coupon": None
        if coupon is None
        else {
            "code": coupon.code,
            "discountPercentage": percent(coupon.discount_percentage),
            "discountValue": coupon.discount_value,
        },
        "requiresShipping": contents.requires_shipping,
        "totalShipping": contents.total_shipping,
        "shippingOptions": [_option(option) for option in contents.options],
        "totalDiscount": contents.total_discount,
        "total": contents.total,
        "cep": cart.cep,
        "shippingType": cart.shipping_type,
        "warnings": [warning(warn, visitor) for warn in contents.warnings],
    }


def _option(option: Option) -> dict[str, Any]:
    return {
        "type": option.type,
        "name": option.name,
        "price": option.price,
        "deadline": option.deadline,
        "freeFrom": option.free_from,
    }


def _line(item: Item) -> dict[str, Any]:
    product = item.product
    return {
        "id": global_id("ShoppingCartProduct", item.line.id),
        "productId": global_id("Product", product.id),
        "title": product.name,
        "price": product.price,
        "quantity": item.line.quantity,
        "images": product.images,
        "available": item.available,
    }


def warning(warn: Warn, visitor: Shopper) -> dict[str, Any]:
    """Return a warning in the form of the schema, in the language of the visitor's store."""
    of = warn.product_id
    return {
        "code": warn.code,
        "message": say_of(visitor.store["language"])(warn.message),
        "productId": None if of is None else global_id("Product", of),
    }


def percent(hundredths: int | None) -> float | None:
    """Return a percentage that is stored in hundredths of a percent."""
    return None if hundredths is None else hundredths / 100


QUERIES: Mapping[str, Resolver] = {
    "shoppingCart": shopping_cart,
    "shippingQuote": shipping_quote,
}
MUTATIONS: Mapping[str, Resolver] = {
    "shoppingCartAddProduct": add,
    "shoppingCartUpdateProduct": update,
    "shoppingCartRemoveProduct": remove,
    "shoppingCartClear": clear,
    "shoppingCartApplyCoupon": apply_coupon,
    "shoppingCartRemoveCoupon": remove_coupon,
    "shoppingCartSetShipping": set_shipping,
}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {}
