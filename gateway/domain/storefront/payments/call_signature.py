"""Checks the signature of a call to us, in the scheme of our own webhooks (Standard Webhooks 1.0).

The headers `webhook-id`, `webhook-timestamp` (seconds) and `webhook-signature` sign
`id.timestamp.body`.
"""

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.records.errors import Refusal
from outbox.sending.request import sign_standard

TOLERANCE = 300
"""Seconds that the clock of the sender may differ from ours."""
MOST_SIGNATURES = 10
_ID = re.compile(r"[\x21-\x7e]{1,255}")
_SECONDS = re.compile("[0-9]{1,12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Signature:
    """The three headers of a call; empty where one is missing or repeated."""

    id: str
    timestamp: str
    signatures: str


def must_be_signed(signature: Signature, body: bytes, secrets: Sequence[str], now: int) -> None:
    """Raise unauthenticated unless one of `secrets` signed the body; `now` in microseconds."""
    if not (signature.id and signature.timestamp and signature.signatures):
        raise _refused(
            "Send the headers webhook-id, webhook-timestamp and webhook-signature, each once."
        )
    if not _ID.fullmatch(signature.id):
        raise _refused("webhook-id must be 1 to 255 visible ASCII characters.")
    if not _SECONDS.fullmatch(signature.timestamp):
        raise _refused("webhook-timestamp must be a whole number of seconds since 1970.")
    sent_at = int(signature.timestamp)
    if abs(now - sent_at * 1_000_000) > TOLERANCE * 1_000_000:
        raise _refused(
            f"webhook-timestamp differs from our clock by more than {TOLERANCE} s; sign each "
            "attempt anew, and check the clock of the sender."
        )
    sent = [part for part in signature.signatures.split() if part.startswith("v1,")]
    # Every pair is compared, so that the time tells nothing about the secrets.
    right = False
    for secret in secrets:
        ours = sign_standard((secret,), signature.id, sent_at, body).encode()
        for theirs in sent[:MOST_SIGNATURES]:
            right |= hmac.compare_digest(ours, theirs.encode("utf-8", "replace"))
    if not right:
        raise _refused(
            "The signature is wrong: sign the exact bytes of the body with the payment secret of "
            "the store."
        )


def _refused(text: str) -> Refusal:
    return Refusal("unauthenticated", text)
