"""Places an order: takes its stock and its number, and creates its invoice and its deal."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway import texts
from gateway.domain.sales import document_lines, documents, invoices, order_mails, unpaid
from gateway.domain.sales.deals import DEALS, SHOP_STAGE, too_many_stages
from gateway.domain.sales.document_lines import Line
from gateway.domain.sales.invoices import INVOICE
from gateway.domain.sales.orders import ORDERS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft, Record
from gateway.records.values.emails import fold_email
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Tx

_CALLED = {code: texts.of(code).forms["order.called"][0] for code in texts.CODES}
"""How a deal and an invoice name an order, by the language of its store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """The checked data of an order; amounts in centavos."""

    order_id: str
    store_id: str
    customer_id: str | None
    contact_id: str
    lines: Sequence[Line]
    """Lines of whole items, each with its product."""
    discount: int
    shipping: int
    coupon: Mapping[str, Any] | None
    shipping_option: Mapping[str, Any] | None
    buyer: Mapping[str, Any]
    """The columns for name, email, phone, document, address, payment_method and notes."""
    expires_at: int
    with_deal: bool
    language: str = "en"
    """That of the store, in which the deal and the invoice name the order."""


async def reserve(tx: Tx, order_id: str, lines: Sequence[Line]) -> None:
    """Take the products of the lines out of stock. Raises insufficient_stock."""
    quantities: Counter[str] = Counter()
    for line in lines:
        assert line.product_id is not None, "an order is of products"
        quantities[line.product_id] += line.quantity // 1000
    await unpaid.reserve(tx, order_id, quantities)


async def place(tx: Tx, actor: Actor, purchase: Purchase, digest: bytes) -> Record:
    """Create a pending order with its invoice and its deal; its stock is reserved already.

    `digest` is the SHA-256 of the token that shows it. Emits deal.created and invoice.created. An
    order that costs nothing is paid at once, which emits invoice.paid and deal.updated. The numbers
    are the last locks that it takes.
    """
    named = document_lines.text(document_lines.named(tx, purchase.lines, ()))
    subtotal = sum(line.total for line in purchase.lines)
    total = subtotal - purchase.discount + purchase.shipping
    amounts = {
        "items": named,
        "subtotal": subtotal,
        "discount": purchase.discount,
        "shipping": purchase.shipping,
        "total": total,
    }
    # Whole milliseconds, as it is shown, so that a client can send it back unchanged.
    expires_at = purchase.expires_at // 1000 * 1000
    number = await documents.take_number(tx, actor.owner_id, ORDERS.table)
    called = _CALLED[purchase.language].format(number=number)
    deal_id = None
    if purchase.with_deal:
        deal = await _open_deal(
            tx, actor, title=called, value=total, contact_id=purchase.contact_id
        )
        deal_id = deal.id
    parties = {"contact_id": purchase.contact_id, "deal_id": deal_id}
    invoice = await documents.issue(
        tx, actor, INVOICE,
        {
            **amounts, **parties, "order_id": purchase.order_id, "due_at": expires_at,
            "due_day": False, "notes": called,
        },
    )  # fmt: skip
    values = {
        **amounts,
        **parties,
        **purchase.buyer,
        "email_folded": fold_email(purchase.buyer["email"]),
        "number": number,
        "status": "pending",
        "store_id": purchase.store_id,
        "customer_id": purchase.customer_id,
        "currency": "BRL",
        "coupon": None if purchase.coupon is None else dumps(purchase.coupon),
        "shipping_option": None
        if purchase.shipping_option is None
        else dumps(purchase.shipping_option),
        "expires_at": expires_at,
        "invoice_id": invoice.id,
    }
    order = await actions.insert(tx, actor, ORDERS, values, purchase.order_id)
    actions.announce(tx, "created", order, before=None)
    await tx.run("insert into order_tokens (digest, order_id) values ($1, $2)", digest, order.id)
    if total > 0:
        await order_mails.add(tx, order, "order_received")
    else:
        # Its mail is that of a paid order.
        await invoices.pay(tx, actor, invoice.id, Draft())
        order = await actions.read(tx, actor, ORDERS, order.id)
    return order


async def _open_deal(tx: Tx, actor: Actor, *, title: str, value: int, contact_id: str) -> Record:
    """Create an open deal in the stage SHOP_STAGE; values are checked already. Emits deal.created.

    The stage may be outside a strict pipeline. When the owner's deals already use the maximum
    number of stages, the deal gets no stage.
    """
    full = bool(await too_many_stages(tx, actor, SHOP_STAGE))
    values = {
        "title": title, "value": value, "currency": "BRL", "status": "open",
        "stage": None if full else SHOP_STAGE, "contact_ids": dumps([contact_id]),
    }  # fmt: skip
    return actions.announce(
        tx, "created", await actions.insert(tx, actor, DEALS, values), before=None
    )
