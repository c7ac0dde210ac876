"""Reads JWTs in compact form strictly, and leaves the check of signatures to joserfc.

It rejects headers and payloads with duplicate members that disagree, NaN, deep nesting or padding.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Collection, Mapping
from typing import Any

from joserfc import jws, jwt
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import Key, OctKey

from gateway.records.values.strictjson import InvalidJson, decode

LONGEST = 16_384
_COMPACT = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}", re.ASCII)


class Unreadable(ValueError):
    """Text that is no signed JWT, or one with a wrong signature."""


class _Registry(jws.JWSRegistry):
    """The limits of joserfc for tokens whose size `header_of` has checked."""

    max_header_length = LONGEST
    max_signature_length = LONGEST

    def get_alg(self, name: str) -> Any:
        """Return an allowed algorithm; joserfc warns of EdDSA, the name that providers use."""
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


def header_of(token: str) -> dict[str, Any]:
    """Return the header of a token, unverified. Raises Unreadable."""
    return _part(token, 0)


def payload_of(token: str) -> dict[str, Any]:
    """Return the payload of a token, unverified. Raises Unreadable."""
    return _part(token, 1)


def verified(token: str, key: Key, algorithms: Collection[str]) -> dict[str, Any]:
    """Return the payload of a token that `key` signed. Raises Unreadable."""
    payload = payload_of(token)
    registry = _Registry(algorithms=algorithms, strict_check_header=False)
    try:
        jws.deserialize_compact(token.encode("ascii"), key, algorithms, registry)
    except (JoseError, ValueError, TypeError, KeyError):
        raise Unreadable("the signature is wrong") from None
    return payload


def sign(header: Mapping[str, Any], claims: Mapping[str, Any], key: OctKey) -> str:
    """Return a token."""
    return jwt.encode(dict(header), dict(claims), key, [header["alg"]])


def _part(token: str, index: int) -> dict[str, Any]:
    if len(token) > LONGEST or _COMPACT.fullmatch(token) is None:
        raise Unreadable("this is no signed JWT")
    text = token.split(".")[index]
    try:
        part = decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (InvalidJson, ValueError):
        raise Unreadable("this is no signed JWT") from None
    if not isinstance(part, dict):
        raise Unreadable("this is no signed JWT")
    return part
