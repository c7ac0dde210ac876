"""An authorisation server for receivers that want an access token: Authlib's, on loopback."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from authlib.oauth2.rfc6749 import AuthorizationServer, ClientMixin, OAuth2Request
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator

from outbox.sending.client_credentials import ClientCredentials
from tests.support.receiver import Answer, Received, Receiver, receiver

# Authlib refuses to work without TLS otherwise.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"


class _Client(ClientMixin):  # type: ignore[misc] # Authlib has no types
    """The one client, which may use both ways to authenticate."""

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer

    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    def check_client_secret(self, client_secret: str) -> bool:
        return client_secret == self._issuer.client_secret

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in ("client_secret_basic", "client_secret_post")

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "client_credentials"


class _Request(OAuth2Request):  # type: ignore[misc] # Authlib has no types
    def __init__(self, got: Received) -> None:
        super().__init__("POST", got.path, headers=got.headers)
        self._form = dict(parse_qsl(got.body.decode("ascii"), strict_parsing=True))
        self.payload = BasicOAuth2Payload(self._form)

    @property
    def args(self) -> dict[str, str]:
        return {}

    @property
    def form(self) -> dict[str, str]:
        return self._form


class _Grant(ClientCredentialsGrant):  # type: ignore[misc] # Authlib has no types
    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")


@dataclass
class Issuer(AuthorizationServer):  # type: ignore[misc] # Authlib has no types
    """Issues tokens to the client `crm`; `valid` are those that its receivers accept."""

    expires_in: int = 3600
    client_secret: str = "s3cret+/: %é"
    box: Receiver = field(default_factory=Receiver)
    valid: set[str] = field(default_factory=set)
    answer: Answer | None = None
    """In place of Authlib's answer."""

    def __post_init__(self) -> None:
        super().__init__()
        self.register_grant(_Grant)
        self.register_token_generator(
            "default",
            BearerTokenGenerator(
                lambda **_: os.urandom(20).hex(), expires_generator=lambda *_: self.expires_in
            ),
        )

    @property
    def requests(self) -> list[Received]:
        return self.box.got

    def credentials(self, **settings: Any) -> ClientCredentials:
        return ClientCredentials(f"{self.box.url}/token", "crm", self.client_secret, **settings)

    def query_client(self, client_id: str) -> _Client | None:
        return _Client(self) if client_id == "crm" else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        self.valid.add(f"Bearer {token['access_token']}")

    def create_oauth2_request(self, request: Received) -> _Request:
        return _Request(request)

    def handle_response(self, status: int, body: Any, headers: Any) -> web.Response:
        return web.json_response(body, status=status)

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Tell nobody."""

    async def issue(self, request: web.Request) -> web.StreamResponse:
        if self.answer is not None:
            return await self.answer(request)
        answered: web.Response = self.create_token_response(self.box.got[-1])
        return answered

    async def protect(self, request: web.Request) -> web.StreamResponse:
        """Answer for a receiver."""
        known = request.headers.get("Authorization") in self.valid
        return web.Response(status=204 if known else 401)


@asynccontextmanager
async def issuer(**settings: Any) -> AsyncIterator[tuple[Issuer, Receiver]]:
    """Run an authorisation server, and a receiver that accepts its tokens."""
    server = Issuer(**settings)
    async with receiver(answer=server.issue) as box, receiver(answer=server.protect) as protected:
        server.box = box
        yield server, protected
