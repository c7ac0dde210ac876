"""Changes accounts of customers: their data, their passwords, and the proof of their emails."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.storefront.mail import mail_tokens, mails
from gateway.domain.storefront.sign_in import customer_sign_in, identities
from gateway.domain.storefront.sign_in.customer_sign_in import PROFILE, SignedIn
from gateway.domain.storefront.visitors import customer_sessions, customers
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records import actions, audit
from gateway.records.errors import Refusal
from gateway.records.record import Record, check
from gateway.records.values.folding import trimmed
from outbox.database.transaction import Tx


async def update(tx: Tx, visitor: Shopper, values: Mapping[str, Any]) -> Record:
    """Change the given data of the customer who is signed in; values are unchecked.

    Raises unauthenticated, and the faults of the values.
    """
    before = await customers.own(tx, visitor, lock=True)
    checked = check(PROFILE, trimmed(values))
    checked.must_hold()
    changes = actions.changes_of(before, checked.values)
    return await actions.update(tx, visitor.actor, before, changes) if changes else before


async def change_password(
    tx: Tx, visitor: Shopper, checked: str | None, hashed: str, cart_token: str | None
) -> SignedIn:
    """Set a new password in place of the `checked` one; all other sessions end.

    Raises unauthenticated, and invalid_credentials when the password changed since the check.
    """
    customer = await customers.own(tx, visitor, lock=True)
    if await customers.password_hash(tx, customer.id) != checked:
        raise Refusal("invalid_credentials", "The password changed meanwhile; sign in again.")
    await _set(tx, visitor, customer.id, hashed)
    return await customer_sign_in.renew(tx, visitor, customer, cart_token)


async def request_reset(tx: Tx, store_id: str, email: str) -> None:
    """Queue the mail for a new password, if the store has an account with this email."""
    credential = await customers.by_email(tx, store_id, email)
    # Both cases run the same statements and both write, so that the time does not reveal the
    # account. The lock makes concurrent requests count each other's mails.
    exists = await customers.lock(tx, "" if credential is None else credential.customer_id)
    if credential is None or not exists:
        await tx.run("update stores set active = active where id = $1", store_id)
    else:
        await mails.add(tx, credential.customer_id, "reset")


async def reset_password(tx: Tx, visitor: Shopper, token: str, hashed: str) -> None:
    """Set a new password with the token of a mail, which also proves the email.

    All linked identities are removed, because whoever took the account over may have linked their
    own; a trusted one is linked again by its next sign-in. Raises invalid_token.
    """
    customer_id = await mail_tokens.take(tx, visitor.store.id, "reset", token)
    customer = await customers.fetch(tx, visitor, customer_id, lock=True)
    if customer is not None:
        await _set(tx, visitor, customer.id, hashed)
        # Somebody else may have created the account with this email before.
        gone = await identities.remove_links(tx, customer.id, proven=customer["email_verified"])
        if gone:
            audit.record(tx, visitor.actor, "updated", CUSTOMERS.noun, customer.id, gone)
        await customers.verify_email(tx, visitor.actor, customer)


async def verify_email(tx: Tx, visitor: Shopper, token: str) -> None:
    """Record the proof of an email with the token of a mail. Raises invalid_token."""
    customer_id = await mail_tokens.take(tx, visitor.store.id, "verify", token)
    customer = await customers.fetch(tx, visitor, customer_id, lock=True)
    if customer is not None:
        await customers.verify_email(tx, visitor.actor, customer)


async def _set(tx: Tx, visitor: Shopper, customer_id: str, hashed: str) -> None:
    """Set a password; every session and every token for a new password ends."""
    await customers.set_password(tx, customer_id, hashed)
    audit.record(tx, visitor.actor, "updated", CUSTOMERS.noun, customer_id, ["password"])
    await customer_sessions.end_all(tx, customer_id)
    await mail_tokens.drop(tx, customer_id, "reset")
