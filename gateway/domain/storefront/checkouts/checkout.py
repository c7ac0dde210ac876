"""Takes checkouts: checks and counts them, and orders the cart of a visitor in one transaction.

The transaction locks the customer's account, the cart, its products by id, the holders of unpaid
orders, the coupon, the contact, and then the numbers. It is one module because a checkout is
refused, repeated or undone as a whole.
"""

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import json

from gateway.domain.contacts.upsert import ContactDetails, upsert
from gateway.domain.sales import coupons, discounts, documents, placing, unpaid
from gateway.domain.sales.discounts import Discount
from gateway.domain.sales.document_lines import Line
from gateway.domain.sales.orders import ORDERS
from gateway.domain.sales.placing import Purchase
from gateway.domain.sales.unpaid import Holder
from gateway.domain.storefront.carts import rows
from gateway.domain.storefront.carts.contents import Contents, Warn, contents, products
from gateway.domain.storefront.carts.rows import Cart, CartTokens
from gateway.domain.storefront.checkouts import budgets, repeats
from gateway.domain.storefront.checkouts.budgets import NO_LIMITS, CheckoutRates, UnpaidLimits
from gateway.domain.storefront.checkouts.repeats import Key, Tokens
from gateway.domain.storefront.stores import shipping
from gateway.domain.storefront.stores.shipping import Option
from gateway.domain.storefront.visitors.shopper import Shopper, hold_customer
from gateway.records import actions
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record, check
from gateway.records.resource import Field, Form
from gateway.records.values import formats, nested, numbers, postal, taxpayer
from gateway.records.values.folding import filled
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.ids import digest_of
from outbox.webhooks.secrets import KeyRing

CHECKOUT = Form(
    noun="checkout",
    description="What a buyer sends with an order.",
    fields=(
        Field("email", "email", formats.email(), "Email.", "maria@example.com", required=True),
        Field("name", "name", formats.title(), "Name.", "Maria da Silva", required=True),
        Field("phone", "phone", formats.phone(), "Phone number.", "(11) 98888-7777"),
        Field("document", "document", taxpayer.taxpayer(), "CPF or CNPJ.", "529.982.247-25"),
        Field(
            "address", "address", nested.object_text(postal.ADDRESS), "Address of the delivery.",
            postal.EXAMPLE,
        ),
        Field(
            "paymentMethod", "payment_method", formats.one_of(*documents.METHODS),
            "Method of payment.", "pix", default="pix",
        ),
        Field("notes", "notes", formats.text(5_000), "Notes for the store.", "Ring twice."),
        Field(
            "expectedTotal", "expected_total", numbers.integer(0, numbers.MOST_CENTAVOS),
            "The total that the buyer agreed to, in centavos.", 17_550,
        ),
        Field(
            "idempotencyKey", "key", formats.title(255), "A key of the client.",
            "6b7f0c1e-order-1042",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckoutInput:
    """The checked input of a checkout."""

    buyer: Mapping[str, Any]
    """The buyer's columns of an order."""
    key: Key | None
    expected_total: int | None
    """The total that the buyer agreed to, in centavos; None for the one that was shown last."""

    @property
    def address(self) -> Mapping[str, Any] | None:
        text = self.buyer.get("address")
        address: Mapping[str, Any] | None = None if text is None else json.decode(text)
        return address


def read_input(sent: Mapping[str, Any]) -> CheckoutInput:
    """Check the input of a checkout. Raises every fault of its values."""
    draft = check(CHECKOUT, filled(sent), creating=True)
    draft.must_hold()
    buyer = dict(draft.values)
    key = buyer.pop("key", None)
    text = json.encode(buyer, order="sorted")
    expected_total = buyer.pop("expected_total", None)
    repeat = None if key is None else Key(key, hashlib.sha256(text).digest())
    return CheckoutInput(buyer, repeat, expected_total)


@dataclass(frozen=True, slots=True)
class Ordered:
    """The result of a checkout."""

    order: Record
    tokens: Tokens
    warnings: tuple[Warn, ...] = ()
    cart_token: str | None = None
    """The token of the visitor's next cart, if it is another one."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A checkout of a cart that differs from what the buyer saw, and the cart as it is now."""

    refusal: Refusal
    cart: Contents


class Checkouts:
    """The checkouts of one installation."""

    def __init__(
        self,
        db: Database,
        ring: KeyRing,
        carts: CartTokens,
        rates: CheckoutRates,
        limits: UnpaidLimits,
        days: int,
    ) -> None:
        """An order expires after `days` unless it is paid."""
        self._db = db
        self._ring = ring
        self._carts = carts
        self._rates = rates
        self._limits = limits
        self._days = days

    async def order(
        self, visitor: Shopper, address: str, sent: Mapping[str, Any]
    ) -> Ordered | Refused:
        """Order the visitor's cart, from a client's address, with the values of the buyer.

        Only a checkout that makes an order counts, and a repeat is answered beyond the rates, too.
        See `checkout` for the result; raises rate_limited besides its refusals.
        """
        checked, db, store = read_input(sent), self._db, visitor.store
        access = urlsafe_b64encode(db.ids.token(32)).rstrip(b"=").decode()
        new = Tokens(access, self._carts.new(store.id, store.owner_id))
        done: Ordered | Refused | None
        try:
            with self._rates.count(address, checked.buyer["email"]) as counted:
                done = await db.write(
                    checkout,
                    visitor,
                    checked,
                    new,
                    ring=self._ring,
                    days=self._days,
                    limits=self._limits,
                )
                if isinstance(done, Refused) or done.tokens is not new:
                    counted.undo()
        except Refusal as refusal:
            if refusal.code != "rate_limited" or checked.key is None:
                raise
            done = await db.read(repeated, visitor, checked, self._ring)
            if done is None:
                raise
        if isinstance(done, Refused):
            return done
        token = done.tokens.cart
        # A repeat of a customer keeps the cart that the customer has by now.
        if token == visitor.cart_token or (visitor.customer_id and done.tokens is not new):
            return done
        return replace(done, cart_token=token)


async def checkout(
    tx: Tx,
    visitor: Shopper,
    form: CheckoutInput,
    tokens: Tokens,
    ring: KeyRing,
    days: int,
    limits: UnpaidLimits = NO_LIMITS,
) -> Ordered | Refused:
    """Order the visitor's cart and return the order, which expires after `days` unless it is paid.

    `tokens` are new ones. A repeat with the same idempotency key returns the first order. When the
    cart no longer holds what the buyer saw, or costs more, this stores the current cart as shown
    and returns the refusal instead of raising it, so that the change is committed. Raises
    cart_empty, insufficient_stock, coupon_usage_limit, validation_error, idempotency_mismatch,
    shipping_required, shipping_unavailable, unauthenticated, unpaid_limit.
    """
    # An erasure at the same time comes before, or waits and finds the order.
    await hold_customer(tx, visitor)
    cart = await rows.find(tx, visitor, lock=True)
    # Look after the lock, which may have waited for the same request; the cart may be the next one.
    earlier = await repeated(tx, visitor, form, ring)
    if earlier is not None:
        return earlier
    _must_accept(visitor.store, form)
    if not cart.lines:
        raise Refusal("cart_empty", "The cart is empty; add a product first.")
    ids = [line.product_id for line in cart.lines]
    sold = await products(tx, visitor, ids, lock=True)
    priced = contents(visitor.store, cart, sold, tx.now)
    refusal = _changed(cart, priced, tx.now)
    option = _shipping(visitor.store, priced, form) if refusal is None else None
    agreed = form.expected_total
    if agreed is None:
        agreed = cart.shown_total
    if refusal is None and priced.total > agreed:
        refusal = _dearer(priced, agreed)
    if refusal is not None:
        await rows.save(tx, priced.cart.with_shown(priced.total))
        return Refused(refusal, priced)
    sale = _Sale(form, priced, option, expires_at=tx.now + days * DAY)
    holders = budgets.holders(visitor, form.buyer["email"], priced.total, limits, ring)
    order = await _place(tx, visitor, sale, tokens, holders)
    if form.key is not None:
        await repeats.keep(tx, visitor, form.key, order.id, tokens, ring)
    return Ordered(order, tokens, (*priced.warnings, *_cheaper(priced, agreed)))


async def repeated(tx: Tx, visitor: Shopper, form: CheckoutInput, ring: KeyRing) -> Ordered | None:
    """Return the order that this request made before, or None. Raises idempotency_mismatch."""
    earlier = None if form.key is None else await repeats.find(tx, visitor, form.key, ring)
    if earlier is None:
        return None
    order_id, tokens = earlier
    return Ordered(await actions.read(tx, visitor.actor, ORDERS, order_id), tokens)


@dataclass(frozen=True, slots=True)
class _Sale:
    """What the buyer sent and buys, and how it is shipped."""

    form: CheckoutInput
    priced: Contents
    option: Option | None
    expires_at: int


async def _place(
    tx: Tx, visitor: Shopper, sale: _Sale, tokens: Tokens, holders: Sequence[Holder]
) -> Record:
    actor, store, buyer = visitor.actor, visitor.store, sale.form.buyer
    priced, option = sale.priced, sale.option
    lines = [
        Line(
            item.product.name, item.line.quantity * 1000, item.product.price,
            item.line.quantity * item.product.price, product_id=item.product.id,
        )
        for item in priced.items
    ]  # fmt: skip
    order_id = tx.new_id()
    await placing.reserve(tx, order_id, lines)
    await unpaid.hold(tx, order_id, holders)
    if priced.coupon is not None:
        await coupons.reserve(tx, actor, priced.coupon.id, order_id, email=buyer["email"])
    contact = await upsert(
        tx,
        actor,
        ContactDetails(email=buyer["email"], name=buyer["name"], phone=buyer.get("phone")),
    )
    purchase = Purchase(
        order_id=order_id,
        store_id=store.id,
        customer_id=visitor.customer_id,
        contact_id=contact.id,
        lines=lines,
        discount=priced.total_discount,
        shipping=0 if option is None else option.price,
        coupon=None if priced.coupon is None else _used(priced.coupon),
        shipping_option=None if option is None else _chosen(option),
        buyer=buyer,
        expires_at=sale.expires_at,
        with_deal=bool(store["deal_on_checkout"]),
        language=store["language"],
    )
    assert tokens.access is not None, "a new order has a new token"
    order = await placing.place(tx, actor, purchase, digest_of(tokens.access))
    await rows.close(tx, priced.cart, order_id)
    return order


def _changed(cart: Cart, priced: Contents, now: int) -> Refusal | None:
    """Return the refusal of a cart that lost a product, its coupon or its shipping option."""
    if len(priced.items) < len(cart.lines):
        message = "The store no longer sells a product of the cart; it was removed from the cart."
        return _refusal("product_not_found", "products", message)
    if cart.coupon_id is not None and priced.coupon is None:
        if cart.coupon is None:
            message = "The coupon of the cart no longer exists; it was removed."
            return _refusal("coupon_not_found", "coupon", message)
        try:
            discounts.must_apply(cart.coupon, priced.total_price, now)
        except Refusal as refusal:
            return _refusal(refusal.code, "coupon", f"{refusal.message} It was removed.")
    if cart.shipping_type is not None and priced.option is None and priced.ships:
        message = "The store no longer offers the chosen shipping option; choose another one."
        return _refusal("shipping_unavailable", "shipping", message)
    return None


def _dearer(priced: Contents, agreed: int) -> Refusal:
    """Return the refusal of a cart that costs more than the buyer agreed to."""
    message = (
        f"The total rose from {agreed} to {priced.total} centavos; show the cart in `extensions` "
        "to the buyer, and check out again."
    )
    return _refusal("total_changed", "expectedTotal", message)


def _cheaper(priced: Contents, agreed: int) -> list[Warn]:
    """Return the warning about a cart that costs less than the buyer agreed to."""
    if priced.total >= agreed:
        return []
    message = f"The total fell from {agreed} to {priced.total} centavos."
    return [Warn("TOTAL_CHANGED", message)]


def _shipping(store: Record, priced: Contents, form: CheckoutInput) -> Option | None:
    """Return the way to ship, None for what is not shipped.

    The address may differ from the CEP of the cart, as long as the same option costs the same.
    Raises validation_error, shipping_required, shipping_unavailable.
    """
    option, address = priced.option, form.address
    if not priced.ships:
        return None
    if option is None:
        if priced.requires_shipping:
            raise _not_chosen(store, priced, address)
        return None
    if address is None:
        message = "The address is required, because the cart has a shipping option."
        raise _refusal("validation_error", "address", message, "required")
    offered = shipping.options(store, address["cep"], priced.total_price)
    if _chosen(option) not in map(_chosen, offered):
        message = (
            f"The chosen shipping option does not apply to the CEP {address['cep']}; set the "
            "shipping of the cart for this CEP."
        )
        raise _refusal("shipping_unavailable", "address.cep", message)
    return option


def _must_accept(store: Record, form: CheckoutInput) -> None:
    """Raise validation_error for a method of payment that the store does not accept."""
    method: str = form.buyer["payment_method"]
    accepted: list[str] = json.decode(store["payment_methods"])
    if method not in accepted:
        message = f"The store does not accept {method}; send one of: {', '.join(accepted)}."
        raise _refusal("validation_error", "paymentMethod", message, "not_accepted")


def _not_chosen(store: Record, priced: Contents, address: Mapping[str, Any] | None) -> Refusal:
    """Return the refusal of a cart that has no shipping option and needs one."""
    field, cep = ("cep", priced.cart.cep) if address is None else ("address.cep", address["cep"])
    if cep is not None and not shipping.options(store, cep, priced.total_price):
        message = f"The store does not ship to the CEP {cep}; send another one."
        return _refusal("shipping_unavailable", field, message)
    message = "Choose a shipping option with shoppingCartSetShipping; the cart needs one."
    return _refusal("shipping_required", "shipping", message)


def _used(coupon: Discount) -> dict[str, Any]:
    kinds = {
        "discountPercentage": coupon.discount_percentage,
        "discountValue": coupon.discount_value,
    }
    return {"code": coupon.code} | {k: v for k, v in kinds.items() if v is not None}


def _chosen(option: Option) -> dict[str, Any]:
    return {
        "type": option.type,
        "name": option.name,
        "price": option.price,
        "deadline": option.deadline,
    }


def _refusal(code: str, field: str, message: str, fault: str = "") -> Refusal:
    return Refusal(code, message, faults=[Fault(field, fault or code, message)])
