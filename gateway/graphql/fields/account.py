"""Resolves customers and their accounts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.domain.storefront.sign_in import customer_passwords, customer_sign_in
from gateway.domain.storefront.sign_in.customer_sign_in import SignedIn
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.values.global_ids import global_id

Payload = dict[str, Any]


async def client(visit: RequestContext, args: Args) -> Payload:
    """Return the store and, if one is signed in, the customer."""
    visitor = await visit.visitor(args["hostname"])
    user = None
    if visitor.customer_id is not None:
        user = await visit.read(customers.fetch, visitor, visitor.customer_id)
    return {"store": visitor.store, "user": user}


async def sign_up(visit: RequestContext, args: Args) -> Payload:
    """Create an account with a password."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    with visit.form():
        password = args["password"]
        wrong = customer_passwords.fault_of(password, "password")
        try:
            values = customer_sign_in.check_sign_up(args).values
        except Refusal as refusal:
            raise _together(refusal, wrong) from None
        if wrong is not None:
            raise wrong
        if await visit.read(customers.by_email, visitor.store.id, values["email"]) is not None:
            raise customers.taken()
        hashed = await visit.storefront.passwords.hash(password, visit.address)
        done = await visit.write(
            customer_sign_in.sign_up,
            visitor,
            values,
            hashed,
            visit.cart_token(visitor.store),
            mail=visit.storefront.mails,
        )
    return greet(visit, args["hostname"], done)


async def log_in(visit: RequestContext, args: Args) -> Payload:
    """Sign in with email and password."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    checked = await visit.storefront.passwords.check(
        visitor.store.id, args["email"], args["password"], visit.address
    )
    done = await visit.write(
        customer_sign_in.sign_in, visitor, checked, visit.cart_token(visitor.store)
    )
    return greet(visit, args["hostname"], done)


async def log_out(visit: RequestContext, args: Args) -> Payload:
    """End the session and forget the cart."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    await visit.write(customer_sign_in.sign_out, visitor)
    forget(visit, args["hostname"], visitor)
    return {"success": True}


def forget(visit: RequestContext, hostname: str, visitor: Shopper) -> None:
    """Clear the cookies of a visitor who continues without customer and cart."""
    same_site = visitor.store["cookie_same_site"]
    visit.cookies.set_auth(None, same_site)
    visit.cookies.set_cart(None, same_site)
    guest = replace(visitor, customer_id=None, session_id=None, cart_token=None)
    visit.become(hostname, guest)


def greet(visit: RequestContext, hostname: str, done: SignedIn) -> Payload:
    """Set the cookies of a new session, and return its token and customer."""
    token = visit.storefront.tokens.sign(done.session)
    same_site = done.visitor.store["cookie_same_site"]
    visit.cookies.set_auth(token, same_site)
    if done.visitor.cart_token is not None:
        visit.cookies.set_cart(done.visitor.cart_token, same_site)
    visit.become(hostname, done.visitor)
    return {"token": token, "user": done.customer}


def _together(refusal: Refusal, wrong: Refusal | None) -> Refusal:
    """Return one refusal with the faults of both."""
    if wrong is None:
        return refusal
    faults = [*refusal.faults, *wrong.faults]
    return Refusal(refusal.code, refusal.message, faults=faults)


def _user(name: str) -> FieldResolver:
    def resolve(user: Record, visit: RequestContext, args: Args) -> Any:
        return user.shown(name)

    return resolve


QUERIES: Mapping[str, Resolver] = {"client": client}
MUTATIONS: Mapping[str, Resolver] = {
    "clientSignup": sign_up,
    "clientLogin": log_in,
    "clientLogout": log_out,
}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {
    "AuthUser": {
        "id": lambda user, visit, args: global_id("AuthUser", user.id),
        **{
            name: _user(name)
            for name in ("name", "email", "phone", "emailVerified", "acceptsMarketing")
        },
    }
}
