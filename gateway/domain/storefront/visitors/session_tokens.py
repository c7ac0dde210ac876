"""Signs and verifies the tokens of customers: JWTs by HS256, with keys of the installation's ring.

Each key derives from one of the ring by HKDF and has its id as `kid`, so every node signs alike and
the rotation of the ring rotates these keys too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from joserfc.errors import JoseError
from joserfc.jwk import OctKey

from gateway.domain.storefront.visitors import compact_jws, customer_sessions
from gateway.domain.storefront.visitors.compact_jws import Unreadable
from gateway.domain.storefront.visitors.customer_sessions import Session
from gateway.domain.storefront.visitors.shopper import Shopper
from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.ids import is_id
from outbox.webhooks.secrets import KeyRing

ALGORITHM = "HS256"
ISSUER = "carteiro"
PURPOSE = "storefront sessions"
LONGEST = 1_024


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a valid token: a session of a customer of a store."""

    session_id: str
    customer_id: str
    store_id: str
    expires_at: int
    """Seconds."""


class TokenRing:
    """The signer and verifier of the tokens of one installation."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._derived()

    def _derived(self) -> None:
        self._known = self._ring.key_ids
        self._keys: Mapping[str, OctKey] = {
            key_id: OctKey.import_key(secret)
            for key_id, secret in self._ring.derive(PURPOSE).items()
        }

    def _key(self, key_id: str) -> OctKey | None:
        """Return the key; read the ring again for an unknown id, which may be a new key."""
        if key_id not in self._keys:
            self._ring.refresh()
            if self._ring.key_ids != self._known:
                self._derived()
        return self._keys.get(key_id)

    def sign(self, session: Session) -> str:
        """Return the token of a session."""
        claims = {
            "iss": ISSUER,
            "sub": session.customer_id,
            "aud": session.store_id,
            "sid": session.id,
            "iat": session.created_at // SECOND,
            "exp": session.expires_at // SECOND,
        }
        newest = self._ring.newest
        key = self._key(newest)
        assert key is not None, "the ring derives a key from each of its own"
        return compact_jws.sign({"alg": ALGORITHM, "kid": newest, "typ": "JWT"}, claims, key)

    def read(self, token: str, now: int) -> Claim | None:
        """Return the claim of a token of this installation, or None for any other text.

        `now` is in microseconds."""
        if len(token) > LONGEST:
            return None
        try:
            header = compact_jws.header_of(token)
            key = self._key(str(header.get("kid")))
            if key is None or header != {"alg": ALGORITHM, "kid": header["kid"], "typ": "JWT"}:
                return None
            claims = compact_jws.verified(token, key, (ALGORITHM,))
        except (Unreadable, JoseError):
            return None
        match claims:
            case {
                "iss": str(issuer),
                "sub": str(customer),
                "aud": str(store),
                "sid": str(session),
                "iat": int(),
                "exp": int(expires_at),
            } if issuer == ISSUER and all(map(is_id, (customer, store, session))):
                claim = Claim(session, customer, store, expires_at)
            case _:
                return None
        return claim if claim.expires_at * SECOND > now else None


async def recognise(tx: Tx, visitor: Shopper, claim: Claim) -> Shopper:
    """Return the visitor with the customer and the session of `claim`.

    For a claim of another store or an ended session, return the visitor unchanged.
    """
    store_id = visitor.store.id
    if claim.store_id != store_id or not await customer_sessions.is_live(
        tx, claim.session_id, claim.customer_id, store_id
    ):
        return visitor
    return replace(visitor, session_id=claim.session_id, customer_id=claim.customer_id)
