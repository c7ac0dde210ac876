"""Resolves sign-ins with identity providers."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from gateway.domain.storefront.sign_in import identities, idp_tokens
from gateway.domain.storefront.sign_in.customer_sign_in import SignedIn
from gateway.domain.storefront.sign_in.identities import Raced
from gateway.domain.storefront.sign_in.idp_tokens import Identity
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.graphql.fields.account import greet
from gateway.graphql.request_context import Args, FieldResolver, RequestContext, Resolver
from gateway.records.errors import Refusal

Payload = dict[str, Any]
NONCE = "idpNonce"
"""The cookie with the nonce of the sign-in, for pages that do not send it in the input."""
ATTEMPTS = 3


async def log_in(visit: RequestContext, args: Args) -> Payload:
    """Sign in with an id_token; create the account when there is none."""
    visitor = await visit.visitor(args["hostname"], strict=False)
    identity = await _verified(visit, visitor, args)
    if identity.name is None:
        identity = replace(identity, name=idp_tokens.name_of(args.get("name")))
    token, mail = visit.cart_token(visitor.store), visit.storefront.mails

    async def enter() -> SignedIn:
        return await visit.write(identities.enter, visitor, identity, token, mail=mail)

    return greet(visit, args["hostname"], await _again(enter))


async def link(visit: RequestContext, args: Args) -> Payload:
    """Link an identity provider to the customer who is signed in."""
    visitor = await visit.visitor(args["hostname"])
    visitor.must_be_customer()
    identity = await _verified(visit, visitor, args)

    async def enter() -> SignedIn:
        return await visit.write(identities.link, visitor, identity, mail=visit.storefront.mails)

    return greet(visit, args["hostname"], await _again(enter))


async def _verified(visit: RequestContext, visitor: Shopper, args: Args) -> Identity:
    """Return the identity of the id_token in an input. Raises invalid_token, unavailable."""
    nonce = args.get("nonce") or visit.request.cookies.get(NONCE)
    return await idp_tokens.verify(
        visitor.store, args["token"], nonce, visit.storefront.providers, visit.now
    )


async def _again(enter: Callable[[], Awaitable[SignedIn]]) -> SignedIn:
    """Run a sign-in again when another one has changed the same account meanwhile."""
    for _ in range(ATTEMPTS):
        try:
            return await enter()
        except Raced:
            continue
    raise Refusal(
        "unavailable", "Another sign-in finished first; try again.", facts={"retry_after": 1}
    )


QUERIES: Mapping[str, Resolver] = {}
MUTATIONS: Mapping[str, Resolver] = {
    "clientIdpLogin": log_in,
    "clientIdpSignup": log_in,
    "clientLinkIdp": link,
}
TYPES: Mapping[str, Mapping[str, FieldResolver]] = {}
