"""Sign with Ed25519 (RFC 8032), and write public keys in the forms that receivers read.

A private key is made of 32 random bytes. Its id is the thumbprint of its public key (RFC 7638), so
that whoever has the public key can compute it.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Mapping, Sequence

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SEED_BYTES = 32
PUBLIC_PREFIX = "whpk_"
"""The start of a public key as text, in Standard Webhooks."""


def private_key(seed: bytes) -> Ed25519PrivateKey:
    """Return the private key of these 32 bytes. Raise ValueError."""
    return Ed25519PrivateKey.from_private_bytes(seed)


def public_of(seed: bytes) -> bytes:
    """Return the 32 bytes of the public key that belongs to a private one."""
    return private_key(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def sign_public(
    keys: Sequence[Ed25519PrivateKey], message_id: str, timestamp: int, body: bytes
) -> str:
    """Return one `v1a,<base64>` per key, separated by spaces, over `message_id.timestamp.body`.

    `timestamp` is in seconds. The asymmetric scheme of Standard Webhooks.
    """
    content = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return " ".join(
        ["v1a," + binascii.b2a_base64(key.sign(content), newline=False).decode() for key in keys]
    )


def verifies(public: bytes, signature: bytes, content: bytes) -> bool:
    """Return whether the private key of `public` has signed `content`."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def key_id(public: bytes) -> str:
    """Return the id of a public key: its JWK thumbprint with SHA-256."""
    members = {"crv": "Ed25519", "kty": "OKP", "x": base64url(public)}
    return base64url(hashlib.sha256(msgspec.json.encode(members)).digest())


def jwk(public: bytes) -> Mapping[str, str]:
    """Return a public key as a JSON Web Key (RFC 8037)."""
    return {
        "kty": "OKP", "crv": "Ed25519", "x": base64url(public), "kid": key_id(public),
        "use": "sig", "alg": "EdDSA",
    }  # fmt: skip


def public_text(public: bytes) -> str:
    """Return a public key as Standard Webhooks writes it: `whpk_` and base64."""
    return PUBLIC_PREFIX + binascii.b2a_base64(public, newline=False).decode()


def base64url(data: bytes) -> str:
    """Return the base64url of `data` without padding, as JOSE writes it."""
    text = binascii.b2a_base64(data, newline=False).rstrip(b"=")
    return text.translate(bytes.maketrans(b"+/", b"-_")).decode()


def from_base64url(text: str) -> bytes:
    """Return the bytes of base64url without padding. Raise ValueError."""
    if not text.isascii() or set(text) & set("+/="):
        raise ValueError("not base64url")
    standard = text.encode().translate(bytes.maketrans(b"-_", b"+/"))
    return binascii.a2b_base64(standard + b"=" * (-len(text) % 4), strict_mode=True)
