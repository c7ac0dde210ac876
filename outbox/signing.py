"""Signatures over a delivery's body: the X-Webhook-Signature scheme and Standard Webhooks."""

import binascii
import hmac
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret(random: bytes) -> str:
    """The secret's text as its owner sees it: `whsec_` and the base64 of `random` (32 bytes)."""
    return PREFIX + _base64(random)


def sign_body(secret: str, body: bytes) -> str:
    """`sha256=` and the lowercase hex HMAC-SHA256 of `body`, keyed with the secret's own text.

    The scheme of GitHub's X-Hub-Signature-256.
    """
    return "sha256=" + hmac.digest(secret.encode(), body, "sha256").hex()


def sign_standard(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
    """One `v1,<base64>` per secret, separated by spaces, over `message_id.timestamp.body`.

    `timestamp` is in seconds. The scheme of the Standard Webhooks specification, 1.0.0. Raises
    ValueError for a secret that is not `whsec_` and base64.
    """
    content = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return " ".join(
        ["v1," + _base64(hmac.digest(_key(secret), content, "sha256")) for secret in secrets]
    )


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        raise ValueError(f"a signing secret starts with {PREFIX}")
    return binascii.a2b_base64(secret[len(PREFIX) :], strict_mode=True)


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")
