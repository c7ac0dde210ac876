"""The settings with which a webhook gets access tokens for its receiver (OAuth2, RFC 6749, 4.4)."""

from dataclasses import dataclass, field
from typing import Literal

import msgspec

ClientAuthentication = Literal["basic", "body"]
"""Whether client id and secret are sent in the Authorization header or in the body."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Where and how access tokens are requested."""

    token_url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str = ""
    audience: str = ""
    parameters: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Further parameters of the token request; their values may be secrets."""
    client_authentication: ClientAuthentication = "basic"


def written(credentials: ClientCredentials) -> bytes:
    """Return the settings as they are stored, before they are encrypted."""
    return msgspec.json.encode(credentials)


def stored(text: bytes) -> ClientCredentials:
    """Return the settings of `written`. Raise ValueError for a damaged text."""
    return msgspec.json.decode(text, type=ClientCredentials)
