"""Signs customers in by identity providers, and links providers to accounts.

An account is found by the pair of issuer and subject, never by the email alone: an email may change
its owner. A new pair whose email has an account is linked only if the provider proves the email and
the store trusts it for that domain. If the email of the account was never verified, somebody else
may have created the account: their password, sessions, tokens, identities and addresses are removed
before the link.

A known pair signs in to its own account, whatever its email. The account gets an email that it has
not, and the proof of the one that it has; an email of another account stays there, also when the
provider proves it, so that two accounts are never merged.

The customer gets a mail about each link, and a reset by mail removes all of them.
"""

from typing import Any

from gateway import texts
from gateway.domain.storefront.mail import mail_tokens, mails
from gateway.domain.storefront.sign_in import customer_sign_in
from gateway.domain.storefront.sign_in.customer_sign_in import SignedIn
from gateway.domain.storefront.sign_in.idp_tokens import Identity
from gateway.domain.storefront.visitors import customer_sessions, customers
from gateway.domain.storefront.visitors.shopper import Shopper, hold_store
from gateway.records import actions, audit
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.values.emails import fold_email
from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.ids import digest_of

MOST = 10
"""Most identities of one customer."""
NAMELESS = "customer.nameless"
"""The key of the name of a customer whose provider tells none, in the language of the store."""

_KNOWN = """
select customer_id from customer_identities where store_id = $1 and issuer = $2 and subject = $3
"""
_LINK = """
insert into customer_identities (store_id, issuer, subject, customer_id, created_at)
select $1, $2, $3, $4, $5 where $6 > (
  select count(*) from customer_identities where customer_id = $4)
on conflict (store_id, issuer, subject) do nothing
"""
NONCES = Expiry("used_nonces", "digest")


class Raced(Exception):
    """Another transaction made the account or the link; the same call again finds it."""


async def enter(
    tx: Tx, visitor: Shopper, identity: Identity, cart_token: str, *, mail: bool
) -> SignedIn:
    """Sign in with an identity; create or link the account when it is new.

    `mail`: whether the installation sends mails. Raises account_link_required, invalid_token,
    Raced.
    """
    await _use_nonce(tx, visitor, identity)
    customer = await _known(tx, visitor, identity)
    if customer is not None:
        return await _return(tx, visitor, identity, customer, cart_token, mail=mail)
    credential = None
    if identity.email is not None:
        credential = await customers.by_email(tx, visitor.store.id, identity.email)
    if credential is None:
        return await _create(tx, visitor, identity, cart_token, mail=mail)
    customer = await customers.fetch(tx, visitor, credential.customer_id, lock=True)
    if customer is None:
        raise Raced
    if not identity.trusted or not (customer["email_verified"] or mail):
        raise _link_required()
    proven = customer["email_verified"]
    if not proven:
        await _secure(tx, visitor, customer)
    # The mail that the account was secured tells of the link, too.
    await _link(tx, visitor, identity, customer, mail=mail and proven)
    customer = await customers.verify_email(tx, visitor.actor, customer)
    return await customer_sign_in.welcome(tx, visitor, customer, cart_token)


async def link(tx: Tx, visitor: Shopper, identity: Identity, *, mail: bool) -> SignedIn:
    """Link an identity to the customer who is signed in.

    `mail`: whether the installation sends mails. Raises unauthenticated, also when the session
    ended since the request began, invalid_token, and conflict when another account has it.
    """
    customer = await customers.own(tx, visitor, lock=True)
    session_id = visitor.session_id or ""
    if not await customer_sessions.is_live(tx, session_id, customer.id, visitor.store.id):
        raise Refusal("unauthenticated", "Your session has ended; sign in again.")
    await _use_nonce(tx, visitor, identity)
    linked = await _known(tx, visitor, identity)
    if linked is None:
        await _link(tx, visitor, identity, customer, mail=mail)
    elif linked.id != customer.id:
        raise Refusal("conflict", "This identity is linked to another account of the store.")
    known = await _complete(tx, visitor, identity, customer)
    if known["email"] != customer["email"]:
        await _welcome_email(tx, visitor, identity, known, mail=mail)
    return await customer_sign_in.renew(tx, visitor, known, visitor.cart_token)


async def _known(tx: Tx, visitor: Shopper, identity: Identity) -> Record | None:
    pair = (visitor.store.id, identity.issuer, identity.subject)
    row = await tx.one(_KNOWN, *pair)
    if row is None:
        return None
    customer = await customers.fetch(tx, visitor, row["customer_id"], lock=True)
    # A new password that the lock waited for may have removed the link.
    return customer if await tx.one(_KNOWN, *pair) is not None else None


async def _return(
    tx: Tx, visitor: Shopper, identity: Identity, customer: Record, cart_token: str, *, mail: bool
) -> SignedIn:
    """Sign in a customer who has the identity."""
    known = await _complete(tx, visitor, identity, customer)
    welcomed = await customer_sign_in.welcome(tx, visitor, known, cart_token)
    if known["email"] != customer["email"]:
        # Lock the contact after the cart, as all units do.
        await _welcome_email(tx, visitor, identity, known, mail=mail)
    return welcomed


def _nameless() -> set[str]:
    return {texts.of(code)(NAMELESS) for code in texts.CODES}


async def _complete(tx: Tx, visitor: Shopper, identity: Identity, customer: Record) -> Record:
    """Store what the provider knows now and the account lacks: name, email, and its proof."""
    changes: dict[str, Any] = {}
    if identity.name is not None and customer["name"] in _nameless():
        changes = actions.changes_of(customer, {"name": identity.name})
    email, own = identity.email, customer["email"]
    if email is not None and own is None:
        if await customers.claim_email(tx, visitor.store.id, email, customer.id):
            changes |= {"email": email, "email_verified": identity.trusted}
    elif email is not None and identity.trusted and fold_email(email) == fold_email(own):
        changes |= actions.changes_of(customer, {"email_verified": True})
    if not changes:
        return customer
    return await actions.update(tx, visitor.actor, customer, changes)


async def _create(
    tx: Tx, visitor: Shopper, identity: Identity, cart_token: str, *, mail: bool
) -> SignedIn:
    await hold_store(tx, visitor)
    try:
        customer = await customers.create(
            tx, visitor, name=identity.name or texts.of(visitor.store["language"])(NAMELESS),
            email=identity.email, email_verified=identity.trusted,
        )  # fmt: skip
    except Refusal:
        raise Raced from None
    await _link(tx, visitor, identity, customer, mail=False)
    welcomed = await customer_sign_in.welcome(tx, visitor, customer, cart_token)
    # Lock the contact after the cart, as all units do.
    await _welcome_email(tx, visitor, identity, customer, mail=mail)
    return welcomed


async def _welcome_email(
    tx: Tx, visitor: Shopper, identity: Identity, customer: Record, *, mail: bool
) -> None:
    """Save the contact of a customer's new email, and ask for its proof where the mail can."""
    await customers.save_contact(tx, visitor, customer)
    if mail and customer["email"] is not None and not identity.trusted:
        await mails.add(tx, customer.id, "verify")


async def _secure(tx: Tx, visitor: Shopper, customer: Record) -> None:
    """Remove all access of whoever created the account: see the module."""
    await customers.set_password(tx, customer.id, None)
    await customer_sessions.end_all(tx, customer.id)
    await mail_tokens.drop(tx, customer.id, "reset")
    await mail_tokens.drop(tx, customer.id, "verify")
    await remove_links(tx, customer.id, proven=False)
    await mails.add(tx, customer.id, "secured")
    taken = ("password", "addresses", "identities")
    audit.record(tx, visitor.actor, "updated", customers.CUSTOMERS.noun, customer.id, taken)


async def remove_links(tx: Tx, customer_id: str, *, proven: bool) -> list[str]:
    """Remove the identities of an account, and the addresses unless its email was proven.

    Return the names of those that there were.
    """
    tables = ["identities"] if proven else ["addresses", "identities"]
    drop = "delete from customer_{} where customer_id = $1"
    return [one for one in tables if await tx.run(drop.format(one), customer_id)]


async def _link(
    tx: Tx, visitor: Shopper, identity: Identity, customer: Record, *, mail: bool
) -> None:
    """Link an identity that is not linked, with a mail if so asked. Raises Raced, conflict."""
    linked = await tx.run(
        _LINK, visitor.store.id, identity.issuer, identity.subject, customer.id, tx.now, MOST
    )
    if linked:
        noun = customers.CUSTOMERS.noun
        audit.record(tx, visitor.actor, "updated", noun, customer.id, ["identities"])
        if mail and customer["email"] is not None:
            await mails.add(tx, customer.id, "linked")
        return
    if await tx.one(_KNOWN, visitor.store.id, identity.issuer, identity.subject) is not None:
        raise Raced
    raise Refusal("conflict", f"This account has {MOST} identities, the limit.")


async def _use_nonce(tx: Tx, visitor: Shopper, identity: Identity) -> None:
    if identity.nonce is not None:
        await _store_nonce(tx, visitor.store.id, identity.nonce, identity.expires_at)


def _link_required() -> Refusal:
    return Refusal(
        "account_link_required",
        "This email has an account in this store; sign in with its password, then link the "
        "identity provider with clientLinkIdp.",
    )


async def _store_nonce(tx: Tx, store_id: str, nonce: str, expires_at: int) -> None:
    """Use a nonce whose token is valid until then (microseconds). Raises invalid_token."""
    used = await tx.run(
        "insert into used_nonces (store_id, digest, expires_at) values ($1, $2, $3)"
        " on conflict (store_id, digest) do nothing",
        store_id,
        digest_of(nonce),
        expires_at,
    )
    if not used:
        raise Refusal("invalid_token", "This sign-in was used already; sign in again.")
