"""Erases the personal data of a customer (LGPD, articles 18 and 19).

Erasure deletes the account with its password, sessions, addresses, identities, mails and cart.
Orders stay, because the law requires records of sales, but without name, email, phone, address and
notes. The same happens to guest orders in the store with the customer's verified email. Reviews
stay without their author.

The contact of the customer belongs to the store's owner. It is deleted, with contact.deleted, when
the storefront created it, the customer's email is verified, and no other account of the owner's
stores has this email; so an account with somebody else's email deletes nobody's contact. Any other
contact stays and gets a note for the owner; if the email is verified, it loses the tag and the
consent. A contact to which the owner gave another email may be somebody else's by now, so it gets
no more than the note; then, and when the owner deleted it, the contact with the verified email is
the customer's.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import json

from gateway.domain.contacts import contacts, person_erasures, upsert
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.person_erasures import Person
from gateway.domain.sales import order_mails
from gateway.domain.sales.orders import ORDERS
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.customers import CUSTOMERS, TAG
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import actions, audit, cascades, store
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.values.emails import earlier_fold, fold_email, spellings
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Tx
from outbox.queue.upkeep import erasure_requests

_ELSEWHERE = """
select 1 as found from customer_emails e join customers c on c.id = e.record_id
where e.value in ($1, $2) and c.owner_id = $3 limit 1
"""
_CART = "delete from carts where store_id = $1 and customer_id = $2"
_NOTE = "The customer erased their account in the store; decide whether this contact stays."


async def erase_own(tx: Tx, visitor: Shopper, checked: str | None) -> None:
    """Erase the account of the customer who is signed in, whose password was `checked`.

    Raises unauthenticated, and invalid_credentials when the password changed since the check.
    """
    customer = await customers.own(tx, visitor, lock=True)
    if await customers.password_hash(tx, customer.id) != checked:
        raise Refusal("invalid_credentials", "The password changed meanwhile; sign in again.")
    await _erase(tx, visitor.actor, customer)


async def remove(
    tx: Tx, actor: Actor, record_id: str, expected: frozenset[str] | None = None
) -> None:
    """Erase an account for the store's owner. See actions.remove."""
    customer = await actions.own(tx, actor, CUSTOMERS, record_id, "write", lock=True)
    actions.must_match(customer, expected)
    await _erase(tx, actor, customer)


async def _erase(tx: Tx, actor: Actor, customer: Record) -> None:
    """Erase an account now, and its traces elsewhere and further orders soon; with a certificate.

    The duty of erasures takes the person out of the orders that are left.
    """
    erasure_id, store_id = tx.new_id(), ""
    orders = await _anonymise_orders(
        tx, actor, erasure_id, _OF_CUSTOMER, customer.owner_id, customer.id
    )
    left = orders == ORDERS_AT_ONCE
    await erase_account(tx, actor, customer)
    if customer["email_verified"]:
        # Guest orders with this email are the customer's, also without the contact.
        of = (customer.owner_id, fold_email(customer["email"]), customer["store_id"])
        guests = await _anonymise_orders(tx, actor, erasure_id, _OF_GUEST, *of)
        orders += guests
        store_id = customer["store_id"] if guests == ORDERS_AT_ONCE else ""
    released = await _release_contact(tx, actor, customer, erasure_id)
    await person_erasures.add(
        tx, customer.owner_id, CUSTOMERS.noun, customer.id,
        Person(
            contacts=() if released is None else (released,), clients=(customer.id,),
            left=(customer.id,) if left else (), store=store_id,
            emails=spellings(customer["email"]) if store_id else (),
        ),
        begun=person_erasures.Begun(
            stage="records" if left or store_id else "responses",
            erased={"clients": 1} | ({} if released is None else {"contacts": 1}),
            kept={"orders": orders} if orders else {},
        ),
        erasure_id=erasure_id,
    )  # fmt: skip


async def erase_account(tx: Tx, actor: Actor, customer: Record) -> None:
    """Delete an account with all that it has, apart from its orders."""
    await tx.run(_CART, customer["store_id"], customer.id)
    for table in ("review_claims", "review_quotas"):
        await tx.run(f"delete from {table} where customer_id = $1", customer.id)
    await store.delete(tx, CUSTOMERS, customer.row)
    audit.record(tx, actor, "erased", CUSTOMERS.noun, customer.id)
    await cascades.follow(tx, CUSTOMERS, customer.owner_id, customer.id)


async def _release_contact(tx: Tx, actor: Actor, customer: Record, erasure_id: str) -> str | None:
    """Delete the contact of an erased customer and return its id, or leave it to the owner."""
    email = customer["email"] or ""
    if (
        await tx.one(_ELSEWHERE, fold_email(email), earlier_fold(email), customer.owner_id)
        is not None
    ):
        return None
    contact = await _contact(tx, actor, customer)
    if contact is None:
        return None
    if contact["source"] == upsert.SOURCE and customer["email_verified"]:
        await contacts.erase(tx, actor, contact.id, erasure_id)
        return contact.id
    tags = [tag for tag in json.decode(contact["tags"]) if tag != TAG]
    changes = actions.changes_of(contact, {"tags": dumps(tags), "consent": False})
    if customer["email_verified"] and changes:
        actions.announce(
            tx, "updated", await actions.update(tx, actor, contact, changes), before=contact
        )
    await upsert.note(tx, actor, contact.id, _NOTE)
    return None


async def _contact(tx: Tx, actor: Actor, customer: Record) -> Record | None:
    """Return the contact that is the customer's, locked, or None."""
    linked, folded = customer["contact_id"], fold_email(customer["email"] or "")
    row = None if linked is None else await store.fetch(tx, CONTACTS, linked, lock=True)
    if row is not None:
        contact = Record(CONTACTS, row)
        if contact["email_folded"] == folded:
            return contact
        await upsert.note(tx, actor, contact.id, _NOTE)
    if not customer["email_verified"]:
        return None
    return await upsert.oldest(tx, actor, folded)


ORDERS_AT_ONCE = 20
"""Orders of each kind that a request takes the person out of itself."""
ERASED_NAME = "Erased customer"
ERASED_EMAIL = "erased@invalid.invalid"
_OF_GUEST = """
select id from orders
where owner_id = $1 and email_folded = $2 and store_id = $3 and customer_id is null
order by created_at, id
"""
_OF_CUSTOMER = (
    "select id from orders where owner_id = $1 and customer_id = $2 order by created_at, id"
)


async def _anonymise_orders(tx: Tx, actor: Actor, subject: str, sql: str, *args: str) -> int:
    """Remove the person from the first orders that the query selects; return how many."""
    rows = await tx.all(f"{sql} limit {ORDERS_AT_ONCE}", *args)
    for order in rows:
        await anonymise(tx, actor, order["id"], subject)
    return len(rows)


async def anonymise(
    tx: Tx,
    actor: Actor,
    order_id: str,
    subject: str,
    redacted: Callable[[Record], Mapping[str, Any]] = lambda _: {},
) -> Record | None:
    """Remove the person from an order, its mails, events and coupon; return it as it was before.

    The lines, the amounts and the CPF or CNPJ stay: the law requires the records of a sale.
    `subject` is the erasure; `redacted` returns what changes in other texts of the order, by
    column.
    """
    row = await store.fetch(tx, ORDERS, order_id, lock=True)
    if row is None:
        return None
    order = Record(ORDERS, row)
    without = {
        **redacted(order),
        "customer_id": None, "name": ERASED_NAME, "email": ERASED_EMAIL,
        "email_folded": ERASED_EMAIL,
        "phone": None, "address": None, "notes": None, "contact_id": None,
    }  # fmt: skip
    await store.update(tx, ORDERS, row, without)
    audit.record(tx, actor, "erased", ORDERS.noun, order_id, audit.fields_of(ORDERS, without))
    await order_mails.drop(tx, order_id)
    await erasure_requests.request(tx, actor.owner_id, [order_id], subject=subject)
    # The key may be any text of the client.
    await tx.run("delete from checkouts where order_id = $1", order_id)
    nobody = hashlib.sha256(f"erased {order_id}".encode()).digest()
    await tx.run(
        "update coupon_uses set holder = $2, customer_id = null where id = $1", order_id, nobody
    )
    return order
