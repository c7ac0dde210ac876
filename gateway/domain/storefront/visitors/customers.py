"""Declares customers, who have accounts in a store, and finds and creates them."""

from typing import Any

from gateway.domain.accounts.users import LONGEST_EMAIL
from gateway.domain.contacts import upsert
from gateway.domain.storefront.visitors.shopper import Shopper, account_deleted
from gateway.records import actions, store
from gateway.records.audit import Actor
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record, record_of
from gateway.records.resource import (
    BY_NAME,
    BY_TIME,
    LASTS,
    Field,
    Filter,
    Reference,
    Resource,
    Unset,
)
from gateway.records.values import formats
from gateway.records.values.emails import earlier_fold, fold_email
from outbox.database.transaction import Tx

TAG = "customer"
"""The tag of a contact who has an account in a store."""
CUSTOMERS = Resource(
    noun="client",
    plural="clients",
    table="customers",
    description="A customer with an account in a store.",
    fields=(
        Field(
            "storeId", "store_id", formats.id_of("store"), "The store of the account.",
            "018f3a5b7c9d1e2f3a4b5c70", on_create=False, on_update=False, made=True,
            reference=Reference("store", "stores", owns=True),
        ),
        Field("name", "name", formats.title(), "Full name.", "Maria da Silva", required=True),
        Field(
            "email", "email", formats.email(), "E-mail address; unique in the store.",
            "maria@example.com", on_update=False,
        ),
        Field("phone", "phone", formats.phone(), "Phone with area code.", "+55 11 98888-7777"),
        Field(
            "emailVerified", "email_verified", formats.boolean(),
            "Whether the customer proved to receive mail at the address.", True, default=False,
            on_create=False, on_update=False,
        ),
        Field(
            "acceptsMarketing", "accepts_marketing", formats.boolean(),
            "Whether the customer accepts marketing.", True, default=False, nullable=False,
        ),
        Field(
            "contactId", "contact_id", formats.id_of("contact"), "The contact of the customer.",
            "018f3a5b7c9d1e2f3a4b5c6d", on_create=False, on_update=False,
            reference=Reference("contact", "contacts"),
        ),
    ),
    events={},
    search=("name", "email"),
    numbers=("phone",),
    folded_sort="name",
    sorts=(*BY_TIME, BY_NAME),
    filters=(
        Filter(
            "storeId", f"store_id = {{}} and {LASTS}", "id", "Only the customers of this store.",
        ),
    ),
    cascades=(Unset("reviews", "customer_id", also=("author",)),),
)  # fmt: skip

_BY_EMAIL = """
select c.id, c.password_hash, c.email_verified from customer_emails e
join customers c on c.id = e.record_id where e.store_id = $1 and e.value in ($2, $3)
order by e.value = $2 limit 1
"""
_CLAIM = """
insert into customer_emails (store_id, value, record_id) values ($1, $2, $3)
on conflict (store_id, value) do nothing
"""


class Credential:
    """What a sign-in checks: the account with an email, and the hash of its password."""

    __slots__ = ("customer_id", "email_verified", "password_hash")

    def __init__(self, customer_id: str, password_hash: str | None, email_verified: bool) -> None:
        self.customer_id = customer_id
        self.password_hash = password_hash
        self.email_verified = email_verified


async def by_email(tx: Tx, store_id: str, email: str) -> Credential | None:
    """Return the account with this email in the store, or None."""
    if len(email) > 2 * LONGEST_EMAIL or "\0" in email:
        # No account has such an address, and folding a very long one takes too long.
        return None
    row = await tx.one(_BY_EMAIL, store_id, fold_email(email), earlier_fold(email))
    if row is None:
        return None
    return Credential(row["id"], row["password_hash"], bool(row["email_verified"]))


async def fetch(tx: Tx, visitor: Shopper, customer_id: str, *, lock: bool = False) -> Record | None:
    """Return the customer of the visitor's store with this id, or None."""
    row = await store.fetch(tx, CUSTOMERS, customer_id, lock=lock)
    if row is None or row[CUSTOMERS.position["store_id"]] != visitor.store.id:
        return None
    return record_of(CUSTOMERS, row, tx.now, visitor.zone)


async def own(tx: Tx, visitor: Shopper, *, lock: bool = False) -> Record:
    """Return the customer who is signed in. Raises unauthenticated."""
    customer = await fetch(tx, visitor, visitor.must_be_customer(), lock=lock)
    if customer is None:
        raise account_deleted()
    return customer


async def lock(tx: Tx, customer_id: str) -> bool:
    """Lock an account until the transaction ends; return whether it exists."""
    sql = "select id from customers where id = $1 /*postgres for no key update*/"
    return await tx.one(sql, customer_id) is not None


async def password_hash(tx: Tx, customer_id: str) -> str | None:
    """Return the hash of a customer's password; None without a password."""
    row = await tx.one("select password_hash from customers where id = $1", customer_id)
    return None if row is None or row["password_hash"] is None else str(row["password_hash"])


async def create(
    tx: Tx,
    visitor: Shopper,
    *,
    name: str,
    email: str | None,
    phone: str | None = None,
    accepts_marketing: bool = False,
    email_verified: bool = False,
) -> Record:
    """Create an account; values are checked already. Raises email_already_exists."""
    values: dict[str, Any] = {
        "store_id": visitor.store.id,
        "name": name,
        "email": None if email is None else email.strip(),
        "phone": phone,
        "email_verified": email_verified,
        "accepts_marketing": accepts_marketing,
    }
    customer = await actions.insert(tx, visitor.actor, CUSTOMERS, values)
    if email is not None and not await claim_email(tx, visitor.store.id, email, customer.id):
        raise taken()
    return customer


async def claim_email(tx: Tx, store_id: str, email: str, customer_id: str) -> bool:
    """Make an email the account's in its store; return False when another account has it."""
    return await tx.run(_CLAIM, store_id, fold_email(email), customer_id) > 0


async def save_contact(tx: Tx, visitor: Shopper, customer: Record) -> None:
    """Create or complete the contact of a new customer for the store's owner."""
    email = customer["email"]
    if email is None:
        return
    contact = await upsert.upsert(
        tx,
        visitor.actor,
        upsert.ContactDetails(
            email=email,
            name=customer["name"],
            phone=customer["phone"],
            tags=(TAG,),
            consent=True if customer["accepts_marketing"] else None,
        ),
    )
    await tx.run("update customers set contact_id = $2 where id = $1", customer.id, contact.id)


async def set_password(tx: Tx, customer_id: str, hashed: str | None) -> None:
    """Store the hash of a new password, or remove the password."""
    await tx.run("update customers set password_hash = $2 where id = $1", customer_id, hashed)


async def rehash(tx: Tx, customer_id: str, before: str, after: str) -> None:
    """Replace the hash of a password by another one of the same password."""
    await tx.run(
        "update customers set password_hash = $3 where id = $1 and password_hash = $2",
        customer_id,
        before,
        after,
    )


async def verify_email(tx: Tx, actor: Actor, customer: Record) -> Record:
    """Record that the customer receives mail at the email."""
    if customer["email_verified"]:
        return customer
    return await actions.update(tx, actor, customer, {"email_verified": True})


def taken() -> Refusal:
    """Return the refusal of an email that has an account."""
    message = "This email has an account in this store; sign in, or reset the password."
    return Refusal("email_already_exists", message, faults=[Fault("email", "taken", message)])
