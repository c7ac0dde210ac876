"""Verifies id_tokens of identity providers (OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725).

The provider must be in the store's list. Its keys come from its JWKS, never from the token.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc.jwk import Key
from msgspec import json

from gateway.domain.storefront.sign_in.idp_keys import Providers
from gateway.domain.storefront.visitors import compact_jws
from gateway.domain.storefront.visitors.compact_jws import Unreadable
from gateway.records.errors import Fault, Refusal
from gateway.records.record import Record
from gateway.records.values import formats
from gateway.records.values.emails import ascii_domain
from gateway.records.values.folding import clean
from gateway.records.values.formats import Format, Wrong
from outbox.durations import SECOND

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    "Ed25519",
)  # fmt: skip
KEYS_OF_ITS_OWN = ("jwk", "jku", "x5c", "x5u")
LONGEST_CLIENT = 255
LEEWAY = 60
"""Seconds that clocks may differ."""
GOOGLE = "https://accounts.google.com"
LEGACY_GOOGLE = "accounts.google.com"
"""Google signs with either: developers.google.com/identity/openid-connect/reference."""
GOOGLE_MAIL = ("gmail.com", "googlemail.com")
LONGEST_NAME = 200
_EMAIL = formats.email()
_NAME = formats.title(LONGEST_NAME)
# A name is one line.
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\s]+")
# Entra writes xms_edov in each of these ways.
_OWNED = (True, "true", 1, "1")


@dataclass(frozen=True, slots=True)
class Identity:
    """The claims of a valid id_token."""

    issuer: str
    subject: str
    email: str | None
    trusted: bool
    """Whether the provider proved the email, and the store trusts it for the email's domain."""
    name: str | None
    nonce: str | None
    """The nonce to use up, where the store requires one."""
    expires_at: int
    """When the token expires; microseconds."""


async def verify(
    store: Record, token: str, nonce: str | None, providers: Providers, now: int
) -> Identity:
    """Return the identity of an id_token. Raises invalid_token, and unavailable without keys."""
    try:
        header = compact_jws.header_of(token)
        claims = compact_jws.payload_of(token)
    except Unreadable:
        raise _invalid("it is no signed JWT") from None
    provider = _provider_of(store, claims.get("iss"))
    _check_header(header)
    _check_claims(claims, provider, nonce, now // SECOND)
    issuer = str(provider["issuer"])
    algorithm = str(header["alg"])
    kid = header.get("kid")

    def signed(key: Key) -> bool:
        try:
            compact_jws.verified(token, key, (algorithm,))
        except Unreadable:
            return False
        return True

    if await providers.verify(issuer, algorithm, kid, signed):
        return _identity(claims, provider, nonce)
    if kid is None:
        raise _invalid("it names no key (kid), and no single key of the provider fits it")
    raise _invalid("no key of the provider signed it")


def _provider_of(store: Record, issuer: Any) -> Mapping[str, Any]:
    """Return the entry of the store's list for the issuer of a token. Raises invalid_token."""
    canonical = GOOGLE if issuer == LEGACY_GOOGLE else issuer
    providers: list[dict[str, Any]] = json.decode(store["idps"])
    for provider in providers:
        if isinstance(issuer, str) and provider["issuer"] in (issuer, canonical):
            return provider
    raise _invalid("its issuer is no identity provider of this store")


def _check_header(header: Mapping[str, Any]) -> None:
    if header.get("alg") not in ALGORITHMS:
        raise _invalid(f"its alg must be one of {', '.join(ALGORITHMS)}")
    if "crit" in header or "b64" in header:
        raise _invalid("its header has extensions")
    if str(header.get("typ", "JWT")).upper() != "JWT" or "cty" in header:
        raise _invalid("its typ is not that of an id_token")
    if not header.keys().isdisjoint(KEYS_OF_ITS_OWN):
        raise _invalid("it brings a key of its own")
    if not isinstance(header.get("kid", ""), str):
        raise _invalid("its kid is no text")


def _check_claims(
    claims: Mapping[str, Any], provider: Mapping[str, Any], nonce: str | None, now: int
) -> None:
    ours: Sequence[str] = json.decode(provider["clientIds"])
    audience = claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(audiences, list) or not any(a in ours for a in audiences):
        raise _invalid("its aud is none of the store's clientIds")
    party = claims.get("azp")
    if (len(audiences) > 1 or "azp" in claims) and party not in ours:
        named = isinstance(party, str) and 0 < len(party) <= LONGEST_CLIENT
        add = f"; if {party!r} is an app of yours, add it to the clientIds" if named else ""
        raise _invalid(f"its azp is none of the store's clientIds{add}")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 1 <= len(subject) <= 255:
        raise _invalid("it has no sub")
    expires_at, issued_at = _seconds(claims, "exp"), _seconds(claims, "iat")
    if expires_at <= now - LEEWAY:
        raise _invalid("it has expired")
    if issued_at > now + LEEWAY or ("nbf" in claims and _seconds(claims, "nbf") > now + LEEWAY):
        raise _invalid("it is not valid yet")
    oldest = provider.get("maxAgeSeconds")
    if oldest is not None and issued_at < now - oldest - LEEWAY:
        raise _invalid("it is older than the store allows")
    if provider.get("nonceRequired") and not nonce:
        raise _invalid("this store needs the nonce of the sign-in")
    if nonce and not _same(claims.get("nonce"), nonce):
        raise _invalid("its nonce is another one")


def _identity(
    claims: Mapping[str, Any], provider: Mapping[str, Any], nonce: str | None
) -> Identity:
    email = _valid(_EMAIL, claims.get("email"))
    return Identity(
        issuer=str(provider["issuer"]),
        subject=str(claims["sub"]),
        email=email,
        trusted=email is not None and _is_trusted(email, claims, provider),
        name=_name_in(claims),
        nonce=nonce if provider.get("nonceRequired") else None,
        expires_at=(_seconds(claims, "exp") + LEEWAY) * SECOND,
    )


def name_of(text: Any) -> str | None:
    """Return a name on one line, without invisible characters, cut to LONGEST_NAME; else None."""
    if not isinstance(text, str):
        return None
    # Cut before and after, because the time to clean a text grows with its length.
    line = clean(_CONTROLS.sub(" ", text[: 4 * LONGEST_NAME]))
    return _valid(_NAME, clean(line[:LONGEST_NAME]))


def _name_in(claims: Mapping[str, Any]) -> str | None:
    """Return the name of a customer: the first claim with one, the email only without another."""
    parts = map(name_of, (claims.get("given_name"), claims.get("family_name")))
    told = (
        claims.get("name"),
        " ".join(filter(None, parts)),
        claims.get("nickname"),
        claims.get("preferred_username"),
    )
    names = [name for name in map(name_of, told) if name is not None]
    # Auth0 writes the email as the name of who has none.
    return next(
        (name for name in names if name != claims.get("email")), names[0] if names else None
    )


def _is_proven(claims: Mapping[str, Any], provider: Mapping[str, Any]) -> bool:
    """Return whether the provider says that the email is the customer's."""
    verified = claims.get("email_verified")
    if verified is not None:
        # Apple, Cognito and Google's samples have the text "true".
        return verified is True or verified == "true"
    # Entra has another claim: whether the email is of a domain that the tenant owns.
    tenant, owned = claims.get("tid"), claims.get("xms_edov")
    return (
        isinstance(tenant, str)
        and tenant in str(provider["issuer"]).split("/")
        and isinstance(owned, bool | int | str)
        and owned in _OWNED
    )


def _is_trusted(email: str, claims: Mapping[str, Any], provider: Mapping[str, Any]) -> bool:
    if not _is_proven(claims, provider):
        return False
    domain = ascii_domain(email.rpartition("@")[2])
    trusted: Sequence[str] = json.decode(provider.get("trustedDomains") or "[]")
    if domain in trusted:
        return True
    hosted = claims.get("hd")
    return provider["issuer"] == GOOGLE and (
        domain in GOOGLE_MAIL or (isinstance(hosted, str) and ascii_domain(hosted) == domain)
    )


def _seconds(claims: Mapping[str, Any], name: str) -> int:
    """Return a time of the token. Raises invalid_token."""
    value = claims.get(name)
    if isinstance(value, bool) or value is None or isinstance(value, str | list | dict):
        raise _invalid(f"its {name} is no time")
    if not 0 <= value <= 1 << 40:
        raise _invalid(f"its {name} is no time")
    return int(value)


def _same(claimed: Any, nonce: str) -> bool:
    if not isinstance(claimed, str):
        return False
    return hmac.compare_digest(claimed.encode(), nonce.encode("utf-8", "replace"))


def _valid(form: Format, value: Any) -> str | None:
    """Return a claim that a customer can have, else None."""
    try:
        return str(form.check(value.strip() if isinstance(value, str) else value))
    except Wrong:
        return None


def _invalid(why: str) -> Refusal:
    message = f"The id_token is not valid: {why}."
    return Refusal("invalid_token", message, faults=[Fault("token", "invalid", message)])
