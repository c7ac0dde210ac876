"""An OpenID provider on loopback: discovery and keys over HTTP, and tokens that it signs."""

import json
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

CLIENT = "shop-client"


@cache
def _keys() -> dict[str, RSAKey | ECKey | OKPKey]:
    """Return the keys of all providers of this process: to make them takes as long as ten tests."""
    return {
        "rsa": RSAKey.generate_key(2048, {"kid": "rsa"}),
        "ec": ECKey.generate_key("P-256", {"kid": "ec"}),
        "ed": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    }


class Issuer:
    """The provider. `keys` are public in its JWKS, by key id."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = dict(_keys())
        self.requests: list[str] = []
        self.failures = 0
        """The number of next requests that get status 500."""
        self.control = "max-age=600"
        self.body: bytes | None = None
        """What the JWKS is, in place of the keys."""
        self.discovery: dict[str, Any] = {}
        """Members of the discovery document that differ."""
        self.redirect = ""

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Return the claims of a good token, with changes; None removes a claim."""
        now = int(time.time())
        good = {
            "iss": self.url, "sub": "ana-1", "aud": CLIENT, "iat": now, "exp": now + 300,
            "email": "ana@example.com", "email_verified": True, "name": "Ana Souza",
        }  # fmt: skip
        return {name: value for name, value in (good | changed).items() if value is not None}

    def token(self, kid: str = "rsa", alg: str = "RS256", **changed: Any) -> str:
        """Return a signed token."""
        return self.sign({"alg": alg, "kid": kid}, self.claims(**changed), kid)

    def sign(self, header: dict[str, Any], claims: dict[str, Any], kid: str = "rsa") -> str:
        """Return a token with exactly these parts."""
        alg = header["alg"]
        with warnings.catch_warnings():
            # The library warns of EdDSA, which providers still sign with.
            warnings.simplefilter("ignore")
            return jwt.encode(header, claims, self.keys[kid], [alg], default_type=None)

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        if self.failures:
            self.failures -= 1
            return web.Response(status=500)
        if self.redirect:
            return web.Response(status=302, headers={"Location": self.redirect})
        headers = {"Cache-Control": self.control}
        if request.path == "/jwks":
            public = [
                key.as_dict(private=False) | {"kid": kid, "use": "sig"}
                for kid, key in self.keys.items()
            ]
            body = json.dumps({"keys": public}).encode() if self.body is None else self.body
            return web.Response(body=body, headers=headers)
        document = {"issuer": self.url, "jwks_uri": f"{self.url}/jwks"} | self.discovery
        return web.json_response(document, headers=headers)


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """Serve a provider until the block ends."""
    issuer = Issuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.handle)
    app.router.add_get("/jwks", issuer.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield issuer
    finally:
        await runner.cleanup()
