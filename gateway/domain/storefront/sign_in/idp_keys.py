"""Caches the public keys of identity providers, found by discovery (OpenID Connect Discovery 1.0).

Keys are cached as long as the provider's Cache-Control says, within bounds. An unknown key id leads
to another fetch, at most once a minute for each provider.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, Key, OKPKey, RSAKey

from gateway.records.errors import Refusal
from gateway.records.values.strictjson import InvalidJson, decode
from outbox.clock import Clock

SECONDS = 3.0
"""The time for discovery and keys together."""
REFETCH_SECONDS = 60.0
FAILED_SECONDS = 5.0
"""How long no fetch follows a failed one."""
SHORTEST, USUAL, LONGEST = 60.0, 3_600.0, 86_400.0
"""Life of cached documents, in seconds; `USUAL` without Cache-Control."""
MOST_PROVIDERS = 500
MOST_KEYS = 100
PUBLIC = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
KINDS: Mapping[str, type[Key]] = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey, "Ed": OKPKey}
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
RSA_BITS = range(2_048, 8_193)


class FetchFailed(Exception):
    """A document that could not be fetched; the text says why, in a few words."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document, and how long it may be cached, in seconds, if the server says."""

    body: bytes
    max_age: float | None


Fetch = Callable[[str], Awaitable[Fetched]]
"""Fetches an address. Raises FetchFailed."""


@dataclass(frozen=True, slots=True)
class _PublicKey:
    """A key of a JWKS."""

    kid: str | None
    algorithm: str | None
    key: Key


@dataclass(slots=True)
class _Provider:
    """The cached keys of one provider; times on the monotonic clock."""

    keys: list[_PublicKey] = field(default_factory=list)
    keys_until: float = float("-inf")
    address: str = ""
    address_until: float = float("-inf")
    tried_at: float = float("-inf")
    failed: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def matching(self, algorithm: str, kid: str | None) -> list[Key]:
        """Return the keys for a token; without a key id, the only one that could be meant."""
        fitting = [
            known for known in self.keys
            if known.algorithm in (None, algorithm) and _fits(known.key, algorithm)
        ]  # fmt: skip
        if kid is not None:
            return [known.key for known in fitting if known.kid == kid]
        return [known.key for known in fitting] if len(fitting) == 1 else []


class Providers:
    """The keys of all providers, in the memory of this process."""

    def __init__(self, clock: Clock, fetch: Fetch) -> None:
        self._clock = clock
        self._fetch = fetch
        self._known: OrderedDict[str, _Provider] = OrderedDict()

    async def find(self, issuer: str, algorithm: str, kid: str | None) -> list[Key]:
        """Return the keys that may have signed a token, few at most.

        Raises unavailable when the provider's keys cannot be fetched.
        """
        provider = self._known.setdefault(issuer, _Provider())
        self._known.move_to_end(issuer)
        if len(self._known) > MOST_PROVIDERS:
            self._known.popitem(last=False)
        keys = provider.matching(algorithm, kid)
        if keys and self._clock.monotonic() < provider.keys_until:
            return keys
        async with provider.lock:
            # The previous holder of the lock may have fetched them.
            if self._is_due(provider, known=bool(provider.matching(algorithm, kid))):
                await self._refresh(issuer, provider)
        if not provider.keys:
            raise Refusal(
                "unavailable",
                "The keys of the identity provider cannot be fetched now; try again later.",
                facts={"retry_after": int(FAILED_SECONDS)},
            )
        return provider.matching(algorithm, kid)

    def _is_due(self, provider: _Provider, *, known: bool) -> bool:
        now = self._clock.monotonic()
        idle = now - provider.tried_at
        if provider.failed and idle < FAILED_SECONDS:
            return False
        return now >= provider.keys_until or (not known and idle >= REFETCH_SECONDS)

    async def _refresh(self, issuer: str, provider: _Provider) -> None:
        """Fetch the keys; after a failure the old ones stay, up to LONGEST."""
        now = provider.tried_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                if now >= provider.address_until:
                    discovery = await self._fetch(
                        f"{issuer.rstrip('/')}/.well-known/openid-configuration"
                    )
                    provider.address = _address_in(discovery.body, issuer)
                    provider.address_until = now + _life(discovery)
                fetched = await self._fetch(provider.address)
                provider.keys = _keys_in(fetched.body)
        except (FetchFailed, InvalidJson, TimeoutError):
            provider.failed = True
            if now >= provider.keys_until + LONGEST:
                provider.keys = []
            return
        provider.failed = False
        provider.keys_until = now + _life(fetched)


def _life(fetched: Fetched) -> float:
    age = USUAL if fetched.max_age is None else fetched.max_age
    return min(max(age, SHORTEST), LONGEST)


def _address_in(body: bytes, issuer: str) -> str:
    """Return the address of the keys of a discovery document. Raises FetchFailed, InvalidJson."""
    document = decode(body)
    if not isinstance(document, dict) or document.get("issuer") != issuer:
        raise FetchFailed("the document is of another issuer")
    address = document.get("jwks_uri")
    if not isinstance(address, str):
        raise FetchFailed("the document has no jwks_uri")
    return address


def _keys_in(body: bytes) -> list[_PublicKey]:
    """Return the usable keys of a JWKS. Raises FetchFailed, InvalidJson."""
    document = decode(body)
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise FetchFailed("the document is no JWKS")
    keys = [_public_key(entry) for entry in entries[:MOST_KEYS] if isinstance(entry, dict)]
    usable = [key for key in keys if key is not None]
    if not usable:
        raise FetchFailed("the JWKS has no usable key")
    return usable


def _public_key(jwk: Mapping[str, Any]) -> _PublicKey | None:
    """Return the public members of a key for signatures, or None for any other key."""
    members = PUBLIC.get(str(jwk.get("kty")))
    kid, algorithm = jwk.get("kid"), jwk.get("alg")
    if members is None or jwk.get("use", "sig") != "sig":
        return None
    if not (kid is None or isinstance(kid, str)):
        return None
    public = {name: jwk.get(name) for name in ("kty", *members)}
    if not all(isinstance(value, str) for value in public.values()):
        return None
    try:
        key = JWKRegistry.import_key({name: str(value) for name, value in public.items()})
        usable = not isinstance(key, RSAKey) or key.public_key.key_size in RSA_BITS
    except (JoseError, ValueError, TypeError):
        return None
    return _PublicKey(kid, None if algorithm is None else str(algorithm), key) if usable else None


def _fits(key: Key, algorithm: str) -> bool:
    """Return whether a key can sign with an algorithm."""
    if not isinstance(key, KINDS[algorithm[:2]]):
        return False
    curve = CURVES.get(algorithm)
    return curve is None or getattr(key, "curve_name", None) == curve
