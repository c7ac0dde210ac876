"""Changes a visitor's cart. Each change is one transaction that locks the cart."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gateway.domain.sales import coupons, discounts
from gateway.domain.storefront.carts import rows
from gateway.domain.storefront.carts.contents import (
    Contents,
    Product,
    Warn,
    contents,
    current,
    products,
)
from gateway.domain.storefront.carts.rows import Cart, Line
from gateway.domain.storefront.stores import shipping
from gateway.domain.storefront.stores.shipping import Option
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Fault, Refusal
from gateway.records.record import refusal
from gateway.records.values.numbers import MOST_CENTAVOS
from outbox.database.transaction import Tx

MOST_ITEMS = 999
"""Most items in a line."""
MOST_LINES = 100


async def add(
    tx: Tx, visitor: Shopper, product_id: str, quantity: int, *, limiting: bool
) -> Contents:
    """Add items of a product to the cart.

    When the stock is too small and `limiting`, it adds what is left, with a warning;
    otherwise it raises insufficient_stock. Raises product_not_found, quantity_limit,
    validation_error.
    """
    if quantity < 1:
        raise refusal([Fault("quantity", "out_of_range", "Send a whole number from 1 to 999.")])
    cart = await rows.opened(tx, visitor)
    sold = await products(tx, visitor, [*(line.product_id for line in cart.lines), product_id])
    product = sold.get(product_id)
    if product is None:
        raise _no_product("productId", "The store has no such product.")
    lines = [line for line in cart.lines if line.product_id in sold]
    old = next((line for line in lines if line.product_id == product_id), None)
    warnings: list[Warn] = []
    total = quantity + (0 if old is None else old.quantity)
    allowed = _allowed(product, total, limiting, warnings)
    if old is None:
        if len(lines) >= MOST_LINES:
            message = f"A cart has at most {MOST_LINES} products."
            raise Refusal(
                "quantity_limit", message, faults=[Fault("productId", "too_many", message)]
            )
        added = Line(tx.new_id(), product_id, allowed, product.price, product.requires_shipping)
        changed = replace(cart, lines=(*cart.lines, added))
    else:
        changed = _with(cart, replace(old, quantity=allowed))
    return await _save(tx, visitor, cart, changed, sold, warnings)


async def update(
    tx: Tx,
    visitor: Shopper,
    quantity: int,
    *,
    line_id: str = "",
    product_id: str = "",
    limiting: bool,
) -> Contents:
    """Set the quantity of the line with this id or this product; 0 removes it.

    `limiting` and the refusals are those of `add`.
    """
    if quantity < 0:
        raise refusal([Fault("quantity", "out_of_range", "Send a whole number from 0 to 999.")])
    cart = await rows.find(tx, visitor, lock=True)
    line = _line(cart, line_id, product_id)
    sold = await products(tx, visitor, [each.product_id for each in cart.lines])
    warnings: list[Warn] = []
    if quantity:
        product = sold.get(line.product_id)
        if product is None:
            raise _no_product("id", "The store no longer sells this product.")
        allowed = _allowed(product, quantity, limiting, warnings)
        changed = _with(cart, replace(line, quantity=allowed))
    else:
        changed = _without(cart, line)
    return await _save(tx, visitor, cart, changed, sold, warnings)


async def remove(tx: Tx, visitor: Shopper, *, line_id: str = "", product_id: str = "") -> Contents:
    """Remove the line with this id or this product. Raises product_not_found."""
    return await update(tx, visitor, 0, line_id=line_id, product_id=product_id, limiting=True)


async def clear(tx: Tx, visitor: Shopper) -> Contents:
    """Remove every line, the coupon and the shipping option."""
    cart = await rows.find(tx, visitor, lock=True)
    return await _save(tx, visitor, cart, Cart(id=cart.id, new_id=cart.new_id), {})


async def apply_coupon(tx: Tx, visitor: Shopper, code: str) -> Contents:
    """Apply the coupon with this code, in place of the one before.

    Raises coupon_not_found, coupon_expired, coupon_not_applicable, coupon_usage_limit.
    """
    coupon = await discounts.by_code(tx, visitor.store.id, code)
    if coupon is None:
        raise discounts.unknown(code)
    cart = await rows.opened(tx, visitor)
    sold = await products(tx, visitor, [line.product_id for line in cart.lines])
    total = contents(visitor.store, replace(cart, coupon_id=None), sold, tx.now).total_price
    discounts.must_apply(coupon, total, tx.now)
    await coupons.must_be_left(tx, coupon, visitor.customer_id)
    changed = replace(cart, coupon_id=coupon.id, coupon=coupon)
    return await _save(tx, visitor, cart, changed, sold)


async def remove_coupon(tx: Tx, visitor: Shopper) -> Contents:
    """Remove the coupon, if there is one."""
    cart = await rows.find(tx, visitor, lock=True)
    sold = await products(tx, visitor, [line.product_id for line in cart.lines])
    changed = replace(cart, coupon_id=None, coupon=None)
    return await _save(tx, visitor, cart, changed, sold)


async def set_shipping(tx: Tx, visitor: Shopper, cep: str, option_type: str | None) -> Contents:
    """Set the destination, and choose the option of the type `option_type`, or none without one.

    Raises invalid_cep, shipping_unavailable.
    """
    digits = shipping.cep_of(cep)
    # Look first, so that a refused request makes no row.
    shipping.chosen(visitor.store, digits, option_type, 0)
    cart = await rows.opened(tx, visitor)
    sold = await products(tx, visitor, [line.product_id for line in cart.lines])
    total = contents(visitor.store, cart, sold, tx.now).total_price
    option = shipping.chosen(visitor.store, digits, option_type, total)
    changed = replace(
        cart,
        cep=digits,
        shipping_type=None if option is None else option.type,
        shipping_price=None if option is None else option.price,
    )
    return await _save(tx, visitor, cart, changed, sold)


async def quote(
    tx: Tx, visitor: Shopper, cep: str, product_id: str | None, quantity: int
) -> Sequence[Option]:
    """Return the ways to ship a product, or the visitor's cart without one; none for a download.

    Raises invalid_cep, product_not_found, validation_error.
    """
    digits = shipping.cep_of(cep)
    if product_id is None:
        held = await current(tx, visitor)
        ships, total = held.ships or not held.items, held.total_price
    else:
        if not 0 < quantity <= MOST_ITEMS:
            raise refusal([Fault("quantity", "out_of_range", "Send a whole number from 1 to 999.")])
        product = (await products(tx, visitor, [product_id])).get(product_id)
        if product is None:
            raise _no_product("productId", "The store has no such product.")
        ships, total = product.requires_shipping, product.price * quantity
    return shipping.options(visitor.store, digits, total) if ships else []


async def _save(
    tx: Tx,
    visitor: Shopper,
    before: Cart,
    cart: Cart,
    sold: Mapping[str, Product],
    warnings: Sequence[Warn] = (),
) -> Contents:
    """Store the cart that the visitor made of `before`, as it is at the current prices.

    Return its contents, with the `warnings` of the change itself.
    """
    changed = contents(visitor.store, cart, sold, tx.now)
    if changed.total_price > MOST_CENTAVOS:
        message = f"The total of a cart is at most {MOST_CENTAVOS} centavos."
        raise Refusal("quantity_limit", message, faults=[Fault("quantity", "too_many", message)])
    if cart.id is not None:
        if before.unseen:
            seen = contents(visitor.store, before, sold, tx.now).cart
            cart = _as_seen(cart, changed.cart, before, seen)
        settled = changed.cart.with_shown(min(cart.shown_total, changed.total))
        changed = replace(changed, cart=await rows.save(tx, settled))
    return replace(changed, warnings=[*warnings, *changed.warnings])


def _as_seen(cart: Cart, changed: Cart, before: Cart, seen: Cart) -> Cart:
    """Return the cart that the visitor made of `before`, at the prices that the visitor saw.

    `changed` is this cart at the current prices, and `seen` the one before. A response showed them
    when `seen` has the total that was shown; else the visitor saw the stored ones.
    """
    if seen.unseen:
        return cart
    same_coupon = cart.coupon_id == before.coupon_id
    same_way = (cart.cep, cart.shipping_type) == (before.cep, before.shipping_type)
    return replace(
        cart,
        lines=changed.lines,
        coupon=seen.coupon if same_coupon else cart.coupon,
        shipping_price=seen.shipping_price if same_way else cart.shipping_price,
        unseen=0,
    )


def _allowed(product: Product, quantity: int, limiting: bool, warnings: list[Warn]) -> int:
    """Return how many of `quantity` items a line may have."""
    if quantity > MOST_ITEMS:
        message = (
            f"A line of a cart has at most {MOST_ITEMS} items; this one would have {quantity}."
        )
        raise Refusal("quantity_limit", message, faults=[Fault("quantity", "too_many", message)])
    if product.covers(quantity):
        return quantity
    stock = product.stock or 0
    # A line needs at least one item, so every version of the API refuses this.
    if not limiting or not stock:
        message = f"Only {stock} of this product are left; the cart would have {quantity}."
        raise Refusal(
            "insufficient_stock",
            message,
            faults=[Fault("quantity", "insufficient_stock", message)],
        )
    message = f"Only {stock} of this product are left; the cart has them all."
    warnings.append(Warn("QUANTITY_LIMITED", message, product.id))
    return stock


def _line(cart: Cart, line_id: str, product_id: str) -> Line:
    for line in cart.lines:
        if line.id == line_id or line.product_id == product_id:
            return line
    raise _no_product("id", "The cart has no such line.")


def _with(cart: Cart, changed: Line) -> Cart:
    lines = (changed if line.id == changed.id else line for line in cart.lines)
    return replace(cart, lines=tuple(lines))


def _without(cart: Cart, removed: Line) -> Cart:
    return replace(cart, lines=tuple(line for line in cart.lines if line.id != removed.id))


def _no_product(field: str, message: str) -> Refusal:
    return Refusal("product_not_found", message, faults=[Fault(field, "unknown", message)])
