"""Computes the current items and prices of a cart, and what changed since its last change.

It uses the current prices, stocks, coupon and shipping rules. `Contents.cart` is
the cart with these changes made: a write stores it, so that a write reports each of them once. A
read reports them without storing them.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct, json
from msgspec.structs import replace

from gateway.domain.sales import discounts
from gateway.domain.sales.discounts import Discount
from gateway.domain.storefront.carts import rows
from gateway.domain.storefront.carts.rows import Cart, Line
from gateway.domain.storefront.stores import shipping
from gateway.domain.storefront.stores.shipping import Option
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Refusal
from gateway.records.record import Record
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx


class Image(Struct, frozen=True):
    """An image of a product."""

    url: str
    alt: str | None = None


class Product(Struct, frozen=True):
    """The data that a cart needs of a product. `stock` None means unlimited."""

    id: str
    name: str
    price: int
    stock: int | None
    images: list[Image]
    requires_shipping: bool

    def covers(self, quantity: int) -> bool:
        """Return whether there is enough in stock."""
        return self.stock is None or quantity <= self.stock


class Item(Struct, frozen=True):
    """A line with its product."""

    line: Line
    product: Product

    @property
    def available(self) -> bool:
        """Whether the product can be bought in this quantity."""
        return self.product.covers(self.line.quantity)


class Warn(Struct, frozen=True):
    """A change that the visitor did not request. `code`: see the schema's CartWarning."""

    code: str
    message: str
    product_id: str | None = None


class Contents(Struct, frozen=True):
    """The items and prices of a cart. Amounts are centavos."""

    cart: Cart
    items: Sequence[Item] = ()
    coupon: Discount | None = None
    options: Sequence[Option] = ()
    option: Option | None = None
    """The chosen way to ship."""
    charges: bool = False
    """Whether the store sells what it ships only with a way to ship."""
    warnings: Sequence[Warn] = ()

    @property
    def total_price(self) -> int:
        """The total of the products."""
        return sum(item.product.price * item.line.quantity for item in self.items)

    @property
    def total_quantity(self) -> int:
        return sum(item.line.quantity for item in self.items)

    @property
    def total_discount(self) -> int:
        """The discount of the coupon, at most the total of the products."""
        return 0 if self.coupon is None else self.coupon.of(self.total_price)

    @property
    def ships(self) -> bool:
        """Whether a product of the cart is shipped."""
        return any(item.product.requires_shipping for item in self.items)

    @property
    def requires_shipping(self) -> bool:
        """Whether a checkout needs a chosen option."""
        return self.charges and self.ships

    @property
    def total_shipping(self) -> int | None:
        """The price of the chosen option; None without one, and in a cart that is not shipped."""
        return self.option.price if self.option is not None and self.ships else None

    @property
    def total(self) -> int:
        return self.total_price - self.total_discount + (self.total_shipping or 0)


_PRODUCTS = f"""
select id, name, price, stock, images, requires_shipping from products
where id in {IDS} and store_id = $2 and published and active
"""


async def products(
    tx: Tx, visitor: Shopper, ids: Sequence[str], *, lock: bool = False
) -> Mapping[str, Product]:
    """Return those of the products that the store sells, by id; `lock` holds them to the end."""
    if not ids:
        return {}
    # Lock by id, so that two orders cannot deadlock.
    end = "order by id /*postgres for no key update*/" if lock else ""
    return {
        row["id"]: Product(
            row["id"], row["name"], row["price"], row["stock"],
            json.decode(row["images"], type=list[Image]), bool(row["requires_shipping"]),
        )
        for row in await tx.all(_PRODUCTS + end, items(ids), visitor.store.id)
    }  # fmt: skip


async def current(tx: Tx, visitor: Shopper, *, lock: bool = False) -> Contents:
    """Return what the visitor's cart holds now; `lock` locks the cart, then its products by id."""
    cart = await rows.find(tx, visitor, lock=lock)
    sold = await products(tx, visitor, [line.product_id for line in cart.lines], lock=lock)
    return contents(visitor.store, cart, sold, tx.now)


def contents(store: Record, cart: Cart, sold: Mapping[str, Product], now: int) -> Contents:
    """Compute what a cart holds; `sold` has the products of its lines that the store sells."""
    warnings: list[Warn] = []
    lines: list[Item] = []
    for line in cart.lines:
        product = sold.get(line.product_id)
        if product is None:
            message = "The store no longer sells this product; its line was removed."
            warnings.append(Warn("PRODUCT_UNAVAILABLE", message, line.product_id))
            continue
        if product.price != line.price:
            message = f"The price changed from {line.price} to {product.price} centavos."
            warnings.append(Warn("PRICE_CHANGED", message, product.id))
        item = Item(replace(line, price=product.price, ships=product.requires_shipping), product)
        if not item.available:
            message = f"Only {product.stock} of this product are left; reduce the quantity."
            warnings.append(Warn("PRODUCT_UNAVAILABLE", message, product.id))
        lines.append(item)
    total = sum(item.product.price * item.line.quantity for item in lines)
    coupon = _coupon(cart, total, now, warnings)
    options = [] if cart.cep is None else shipping.options(store, cart.cep, total)
    option = _option(cart, options, warnings)
    settled = replace(
        cart,
        lines=tuple(item.line for item in lines),
        coupon_id=None if coupon is None else coupon.id,
        coupon=coupon,
        shipping_type=None if option is None else option.type,
        shipping_price=None if option is None else option.price,
    ).with_shown(cart.shown_total)
    return Contents(
        cart=settled,
        items=lines,
        coupon=coupon,
        options=options,
        option=option,
        charges=store["shipping_rules"] != shipping.NO_RULES,
        warnings=warnings,
    )


def _coupon(cart: Cart, total: int, now: int, warnings: list[Warn]) -> Discount | None:
    """Return the cart's coupon if it still applies."""
    if cart.coupon_id is None:
        return None
    if cart.coupon is None:
        warnings.append(Warn("COUPON_REMOVED", "The coupon no longer exists; it was removed."))
        return None
    try:
        discounts.must_apply(cart.coupon, total, now)
    except Refusal as refusal:
        warnings.append(Warn("COUPON_REMOVED", f"{refusal.message} It was removed."))
        return None
    return cart.coupon


def _option(cart: Cart, options: Sequence[Option], warnings: list[Warn]) -> Option | None:
    """Return the chosen option if the store still offers it."""
    if cart.shipping_type is None:
        return None
    for option in options:
        if option.type == cart.shipping_type:
            # A cart that becomes free to ship by what it holds is no news.
            if cart.shipping_price not in option.prices:
                message = f"The price of shipping changed to {option.price} centavos."
                warnings.append(Warn("PRICE_CHANGED", message))
            return option
    message = "The store no longer offers the chosen shipping option; choose another one."
    warnings.append(Warn("SHIPPING_REMOVED", message))
    return None
