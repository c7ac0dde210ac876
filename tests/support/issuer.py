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
from yarl import URL

CLIENT = "shop-client"


@cache
def _keys() -> dict[str, RSAKey | ECKey | OKPKey]:
    """Return the keys of all providers of this process: to make them takes as long as ten tests."""
    return {
        "rsa": RSAKey.generate_key(2048, {"kid": "rsa"}),
        "ec": ECKey.generate_key("P-256", {"kid": "ec"}),
        "ed": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    }


@cache
def spare(_: int) -> RSAKey:
    """Return another key, such as the next one of a provider."""
    return RSAKey.generate_key(2048)


class Issuer:
    """The provider. `keys` are public in its JWKS, by key id."""

    def __init__(self) -> None:
        self.url = ""
        self.keys = dict(_keys())
        self.shape: dict[str, Any] = {}
        """Members of the keys in the JWKS that differ; None removes one."""
        self.others: list[Any] = []
        """Further entries of the JWKS, before the keys."""
        self.jwks = "/jwks"
        self.headers: dict[str, str] = {}
        """Headers of the JWKS."""
        self.left: dict[str, bytes] = {}
        """Documents at addresses that it no longer names."""
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

    def only(self, kid: str | None, key: RSAKey | ECKey | OKPKey) -> None:
        """Have this key alone; without a key id it is named "" here."""
        self.keys = {kid or "": key}
        self.shape["kid"] = kid

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

    def published(self) -> bytes:
        """Return the JWKS."""
        public = [
            key.as_dict(private=False) | {"kid": kid, "use": "sig"} | self.shape
            for kid, key in self.keys.items()
        ]
        shown = [{n: v for n, v in key.items() if v is not None} for key in public]
        return json.dumps({"keys": self.others + shown}).encode()

    async def handle(self, request: web.Request) -> web.Response:
        self.requests.append(request.path)
        if self.failures:
            self.failures -= 1
            return web.Response(status=500)
        if self.redirect:
            return web.Response(status=302, headers={"Location": self.redirect})
        headers = {"Cache-Control": self.control}
        if request.path == self.jwks:
            body = self.published() if self.body is None else self.body
            return web.Response(body=body, headers=headers | self.headers)
        if request.path in self.left:
            return web.Response(body=self.left[request.path], headers=headers)
        home = URL(self.url)
        if request.path != f"{home.path.rstrip('/')}/.well-known/openid-configuration":
            return web.Response(status=404)
        document = {"issuer": self.url, "jwks_uri": str(home.with_path(self.jwks))}
        body = json.dumps(document | self.discovery).encode()
        return web.Response(body=body, headers=headers)


@asynccontextmanager
async def issuing() -> AsyncIterator[Issuer]:
    """Serve a provider until the block ends."""
    issuer = Issuer()
    app = web.Application()
    app.router.add_get("/{path:.*}", issuer.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield issuer
    finally:
        await runner.cleanup()
