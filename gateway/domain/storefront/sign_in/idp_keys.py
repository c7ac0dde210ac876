"""Caches the public keys of identity providers, found by discovery (OpenID Connect Discovery 1.0).

Keys are cached as long as the provider's Cache-Control says, within bounds. A token that no known
key signed leads to another fetch, at most once a minute for each provider: a provider may replace a
key under the same id, or move its keys to another address.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
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
"""How long no fetch follows a failed one, where no key is known or the known ones are too old."""
SHORTEST, USUAL, LONGEST = 60.0, 3_600.0, 86_400.0
"""Life of cached documents, in seconds; `USUAL` without Cache-Control."""
MOST_PROVIDERS = 500
MOST_KEYS = 100
PUBLIC = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
KINDS: Mapping[str, type[Key]] = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey, "Ed": OKPKey}
CURVES = {
    "ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519", "Ed25519": "Ed25519",
}  # fmt: skip
SAME = {"Ed25519": "EdDSA"}
"""Algorithms with two names (RFC 9864)."""
RSA_BITS = range(2_048, 8_193)
_VERIFYING = frozenset({"verify", "sign"})
_URL_SAFE = str.maketrans("+/", "-_")


class FetchFailed(Exception):
    """A document that could not be fetched; the text says why, in a few words."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A document, and how long it may be cached, in seconds, if the server says."""

    body: bytes
    max_age: float | None


Fetch = Callable[[str], Awaitable[Fetched]]
"""Fetches an address. Raises FetchFailed."""
Signed = Callable[[Key], bool]
"""Says whether a key signed the token that is checked."""


@dataclass(frozen=True, slots=True)
class _PublicKey:
    """A key of a JWKS."""

    kid: str | None
    algorithm: str | None
    key: Key


_Fits = Callable[[Sequence[_PublicKey]], bool]


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


class Providers:
    """The keys of all providers, in the memory of this process."""

    def __init__(self, clock: Clock, fetch: Fetch) -> None:
        self._clock = clock
        self._fetch = fetch
        self._known: OrderedDict[str, _Provider] = OrderedDict()

    async def verify(self, issuer: str, algorithm: str, kid: str | None, signed: Signed) -> bool:
        """Return whether a key of the provider signed a token.

        Raises unavailable when no known key did and the newest keys cannot be fetched.
        """
        provider = self._known.setdefault(issuer, _Provider())
        self._known.move_to_end(issuer)
        if len(self._known) > MOST_PROVIDERS:
            self._known.popitem(last=False)

        def fits(keys: Sequence[_PublicKey]) -> bool:
            return any(map(signed, _candidates(keys, algorithm, kid)))

        if self._clock.monotonic() < provider.keys_until and fits(provider.keys):
            return True
        async with provider.lock:
            # The previous holder of the lock may have fetched them.
            if self._wait(provider) <= 0:
                await self._refresh(issuer, provider, fits)
        if fits(provider.keys):
            return True
        if provider.keys and not provider.failed:
            return False
        raise Refusal(
            "unavailable",
            "The keys of the identity provider cannot be fetched now; try again later.",
            facts={"retry_after": ceil(max(1.0, self._wait(provider)))},
        )

    def _wait(self, provider: _Provider) -> float:
        """Return the seconds until the keys may be fetched again."""
        now = self._clock.monotonic()
        idle = now - provider.tried_at
        if now < provider.keys_until:
            return REFETCH_SECONDS - idle
        return FAILED_SECONDS - idle if provider.failed else 0.0

    async def _refresh(self, issuer: str, provider: _Provider, fits: _Fits) -> None:
        """Fetch the keys; after a failure the old ones stay, up to LONGEST."""
        now = provider.tried_at = self._clock.monotonic()
        # A request that is given up in the middle leaves this.
        provider.failed = True
        try:
            async with asyncio.timeout(SECONDS):
                keys, fetched = await self._fetched(issuer, provider, now, fits)
        except (FetchFailed, InvalidJson, TimeoutError):
            if now >= provider.keys_until + LONGEST:
                provider.keys = []
            return
        provider.failed = False
        provider.keys = keys
        provider.keys_until = now + _life(fetched)

    async def _fetched(
        self, issuer: str, provider: _Provider, now: float, fits: _Fits
    ) -> tuple[list[_PublicKey], Fetched]:
        """Return the keys, of another address if those of the known one fail or do not fit.

        Raises FetchFailed, InvalidJson.
        """
        known: tuple[list[_PublicKey], Fetched] | None = None
        if now < provider.address_until:
            # What is left of the time is for the discovery: the known host may be gone.
            with suppress(FetchFailed, InvalidJson, TimeoutError):
                async with asyncio.timeout(SECONDS / 2):
                    known = await self._keys(provider.address)
            if known is not None and fits(known[0]):
                return known
        try:
            discovery = await self._fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
            address = _address_in(discovery.body, issuer)
        except (FetchFailed, InvalidJson):
            if known is not None:
                return known
            raise
        moved = address != provider.address
        provider.address, provider.address_until = address, now + _life(discovery)
        return known if known is not None and not moved else await self._keys(address)

    async def _keys(self, address: str) -> tuple[list[_PublicKey], Fetched]:
        fetched = await self._fetch(address)
        return _keys_in(fetched.body), fetched


def _candidates(keys: Sequence[_PublicKey], algorithm: str, kid: str | None) -> list[Key]:
    """Return the keys that may have signed a token, few at most.

    Of a token without a key id it is the only key that could be meant; so is a key without an id
    where no key has that of the token.
    """
    fitting = [
        known
        for known in keys
        if known.algorithm in (None, SAME.get(algorithm, algorithm)) and _fits(known.key, algorithm)
    ]
    named = [known.key for known in fitting if known.kid == kid]
    if kid is not None and named:
        return named
    # A key that is listed twice, as for two algorithms, is one key.
    rest = {known.key.thumbprint(): known.key for known in fitting if None in (kid, known.kid)}
    return [*rest.values()] if len(rest) == 1 else []


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
    # Some providers send "" or null in place of what they leave out.
    sent = (jwk.get(name) or None for name in ("kid", "alg", "use", "key_ops"))
    kid, algorithm, use, verbs = sent
    if members is None or use not in (None, "sig") or not isinstance(kid, str | None):
        return None
    if isinstance(verbs, list) and _VERIFYING.isdisjoint(filter(_is_text, verbs)):
        return None
    values = [jwk.get(name) for name in members]
    if not all(map(_is_text, values)):
        return None
    # Some providers pad the base64, or write it with + and /.
    texts = (str(value).rstrip("=").translate(_URL_SAFE) for value in values)
    public: dict[str, str | list[str]] = dict(zip(members, texts, strict=True))
    try:
        key = JWKRegistry.import_key({**public, "kty": str(jwk["kty"])})
        usable = not isinstance(key, RSAKey) or key.public_key.key_size in RSA_BITS
    except (JoseError, ValueError, TypeError):
        return None
    if algorithm is not None:
        algorithm = SAME.get(str(algorithm), str(algorithm))
    return _PublicKey(kid, algorithm, key) if usable else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _fits(key: Key, algorithm: str) -> bool:
    """Return whether a key can sign with an algorithm."""
    if not isinstance(key, KINDS[algorithm[:2]]):
        return False
    curve = CURVES.get(algorithm)
    return curve is None or getattr(key, "curve_name", None) == curve
