"""Signs customers up, in and out: each is one transaction with the cart of the visitor."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.storefront.carts import cart_lifecycle
from gateway.domain.storefront.mail import mails
from gateway.domain.storefront.sign_in.customer_passwords import invalid_credentials
from gateway.domain.storefront.visitors import customer_sessions, customers
from gateway.domain.storefront.visitors.customer_sessions import Session
from gateway.domain.storefront.visitors.customers import CUSTOMERS, Credential
from gateway.domain.storefront.visitors.shopper import Shopper, hold_store
from gateway.records.record import Draft, Record, check
from gateway.records.resource import Field, Form
from gateway.records.values import formats
from gateway.records.values.folding import filled
from outbox.database.transaction import Tx

_NAMED = CUSTOMERS.named
SIGN_UP = Form(
    noun="sign-up",
    description="The data of a new account.",
    fields=(
        _NAMED["name"],
        Field(
            "email", "email", formats.email(), "E-mail address.", "maria@example.com",
            required=True,
        ),
        _NAMED["phone"],
        _NAMED["acceptsMarketing"],
    ),
)  # fmt: skip
PROFILE = Form(
    noun="profile",
    description="The changeable data of an account.",
    fields=(_NAMED["name"], _NAMED["phone"], _NAMED["acceptsMarketing"]),
)


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A customer with a new session, and the visitor that the request continues as."""

    customer: Record
    session: Session
    visitor: Shopper


def check_sign_up(values: Mapping[str, Any]) -> Draft:
    """Return the checked values of a sign-up. Raises their faults."""
    checked = check(SIGN_UP, filled(values), creating=True)
    checked.must_hold()
    return checked


async def sign_up(
    tx: Tx,
    visitor: Shopper,
    values: Mapping[str, Any],
    hashed: str,
    cart_token: str,
    *,
    mail: bool,
) -> SignedIn:
    """Create an account and sign it in. Raises email_already_exists.

    With `mail` the customer gets a mail to verify the email.
    """
    await hold_store(tx, visitor)
    customer = await customers.create(
        tx, visitor, name=values["name"], email=values["email"], phone=values.get("phone"),
        accepts_marketing=bool(values.get("accepts_marketing")),
    )  # fmt: skip
    await customers.set_password(tx, customer.id, hashed)
    welcomed = await welcome(tx, visitor, customer, cart_token)
    # Lock the contact after the cart, as all units do.
    await customers.save_contact(tx, visitor, customer)
    if mail:
        await mails.add(tx, customer.id, "verify")
    return welcomed


async def sign_in(tx: Tx, visitor: Shopper, checked: Credential, cart_token: str) -> SignedIn:
    """Sign a customer in whose password was `checked`.

    Raises invalid_credentials when the account or its password changed since the check.
    """
    customer = await customers.fetch(tx, visitor, checked.customer_id, lock=True)
    if customer is None or await customers.password_hash(tx, customer.id) != checked.password_hash:
        raise invalid_credentials()
    return await welcome(tx, visitor, customer, cart_token)


async def welcome(tx: Tx, visitor: Shopper, customer: Record, cart_token: str) -> SignedIn:
    """Start a session for a customer, and give them the visitor's cart under a new token."""
    await cart_lifecycle.adopt(tx, visitor, customer.id)
    return await renew(tx, visitor, customer, cart_token)


async def renew(tx: Tx, visitor: Shopper, customer: Record, cart_token: str | None) -> SignedIn:
    """Continue as the customer who is signed in, with another session and the same cart."""
    session = await customer_sessions.start(tx, customer.id, visitor.store.id, visitor.session_id)
    renewed = replace(
        visitor, customer_id=customer.id, session_id=session.id, cart_token=cart_token
    )
    return SignedIn(customer, session, renewed)


async def sign_out(tx: Tx, visitor: Shopper) -> None:
    """End the session of the visitor."""
    if visitor.session_id is not None:
        await customer_sessions.end(tx, visitor.session_id)
