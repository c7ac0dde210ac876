"""Shows a customer's orders for an export, and takes the person out of them on erasure."""

from collections.abc import Sequence
from typing import Any

from gateway.domain.sales.orders import ORDERS
from gateway.records import store
from gateway.records.record import Record
from outbox.database.transaction import Row, Tx

ERASED_NAME = "Erased customer"
ERASED_EMAIL = "erased@invalid.invalid"
EXPORTED = (
    "number", "status", "createdAt", "items", "subtotal", "discount", "shipping", "total",
    "currency", "name", "email", "phone", "document", "address", "paymentMethod", "notes",
)  # fmt: skip
_OF_GUEST = """
select id from orders
where owner_id = $1 and contact_id = $2 and store_id = $3 and customer_id is null
order by created_at, id
"""
_IDS = "select id from orders where owner_id = $1 and customer_id = $2 order by created_at, id"


async def export(tx: Tx, owner_id: str, customer_id: str) -> list[dict[str, Any]]:
    """Return the orders of a customer, the oldest first; amounts are in BRL."""
    found = []
    for row in await tx.all(_IDS, owner_id, customer_id):
        order = await store.fetch(tx, ORDERS, row["id"])
        if order is not None:
            record = Record(ORDERS, order)
            found.append({name: record.shown(name) for name in EXPORTED})
    return found


async def anonymise(tx: Tx, owner_id: str, customer_id: str) -> None:
    """Remove the person from the orders of a customer.

    The lines, the amounts and the CPF or CNPJ stay: the law requires the records of a sale.
    """
    await _anonymise(tx, await tx.all(_IDS, owner_id, customer_id))


async def anonymise_guest(tx: Tx, owner_id: str, store_id: str, contact_id: str) -> None:
    """Remove the person from the orders that a contact made in a store without an account."""
    await _anonymise(tx, await tx.all(_OF_GUEST, owner_id, contact_id, store_id))


async def _anonymise(tx: Tx, orders: Sequence[Row]) -> None:
    for found in orders:
        row = await store.fetch(tx, ORDERS, found["id"], lock=True)
        if row is not None:
            await store.update(
                tx, ORDERS, row,
                {
                    "customer_id": None, "name": ERASED_NAME, "email": ERASED_EMAIL,
                    "phone": None, "address": None, "notes": None, "contact_id": None,
                },
            )  # fmt: skip
