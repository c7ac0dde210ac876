"""Names the networks of a client in the database, without their addresses.

There are few addresses, so a plain digest would reveal them. These are keyed with a key that
derives from the installation's ring; after the ring is rotated, the counts begin anew.
"""

import hmac
from functools import lru_cache

from gateway.domain.accounts.networks import networks_of
from outbox.webhooks.secrets import KeyRing

PURPOSE = "storefront networks"


class NetworkDigests:
    """The digests of one installation."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring
        self._key_id = ""
        self._key = b""
        self._known = lru_cache(maxsize=4096)(self._digests)

    def of(self, address: str) -> tuple[tuple[str, int], ...]:
        """Return the digest of each network of an address, with its multiple of the limits.

        See accounts.networks.networks_of.
        """
        if self._key_id != self._ring.newest:
            self._key_id = self._ring.newest
            self._key = self._ring.derive(PURPOSE)[self._key_id]
            self._known.cache_clear()
        return self._known(address)

    def _digests(self, address: str) -> tuple[tuple[str, int], ...]:
        return tuple(
            (hmac.digest(self._key, network.encode(), "sha256").hex()[:32], worth)
            for network, worth in networks_of(address)
        )
