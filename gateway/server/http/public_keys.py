"""The public keys of the installation, for receivers: /.well-known/carteiro/keys (RFC 7517).

It lists the keys that sign now. A receiver may keep them for CACHED_SECONDS, which is far shorter
than the time for which a replaced key still signs.
"""

import asyncio
import hashlib

import msgspec
from aiohttp import web

from outbox.clock import Clock
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable
from outbox.sending import ed25519
from outbox.webhooks import signing_keys

PATH = "/.well-known/carteiro/keys"
CONTENT_TYPE = "application/jwk-set+json"
CACHED_SECONDS = 3600
READ_AGAIN_SECONDS = 5.0
"""Everybody may ask, so that the database is read once in this time and not for each request."""


class PublicKeys:
    """The document of the public keys, a few seconds old while the database can be read."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._lock = asyncio.Lock()
        self._body = b""
        self._read_at: float | None = None

    async def document(self) -> bytes:
        """Return the keys as a JSON Web Key Set, the current one first."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._read_at is None or now - self._read_at >= READ_AGAIN_SECONDS:
                try:
                    keys = await self._db.read(signing_keys.listed)
                except DatabaseUnavailable:
                    # Receivers verify during an outage too. The next read comes later, so that
                    # those who ask do not wait for each other.
                    if self._read_at is None:
                        raise
                    self._read_at = self._clock.monotonic()
                    return self._body
                jwks = [ed25519.jwk(key.public) for key in keys if key.signs]
                self._body, self._read_at = msgspec.json.encode({"keys": jwks}), now
            return self._body


PUBLIC_KEYS = web.AppKey("PUBLIC_KEYS", PublicKeys)


async def show(request: web.Request) -> web.Response:
    """Return the public keys, or 304 when the client has them."""
    body = await request.app[PUBLIC_KEYS].document()
    etag = hashlib.sha256(body).hexdigest()[:32]
    headers = {"Cache-Control": f"public, max-age={CACHED_SECONDS}", "ETag": f'"{etag}"'}
    known = request.if_none_match or ()
    if any(tag.value in (etag, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE} | headers)


def add_public_keys(router: web.UrlDispatcher) -> None:
    """Add the route; aiohttp supports HEAD wherever there is GET."""
    router.add_get(PATH, show)
