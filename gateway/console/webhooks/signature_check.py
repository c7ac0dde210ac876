"""Checks both signatures of a request against the secrets of a webhook, and says what is wrong."""

import hmac
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.console.webhooks.pasted_request import Pasted
from gateway.domain.webhooks.signing import Place, Secret
from outbox.events import encode
from outbox.sending.request import sign_body, sign_standard

TOLERANCE = 300
"""Seconds that a receiver allows between its clock and `webhook-timestamp`."""
DIGITS = re.compile("[0-9]{1,12}")
Reason = Literal[
    "", "missing_header", "malformed_timestamp", "no_v1_signature", "wrong_signature",
]  # fmt: skip
"""Why a signature is refused, as docs/how-to/verify-signatures.md says; empty when it is right."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about one signature; `by` is the secret that made it."""

    header: str
    reason: Reason
    by: Place | None = None
    reformatted: bool = False
    """It is right for the same JSON in other bytes: those that were sent."""


@dataclass(frozen=True, slots=True)
class Check:
    """Both signatures, and the age of the request in seconds when it is past the tolerance."""

    standard: Verdict
    body: Verdict
    too_old: int | None = None
    too_new: int | None = None


def check(request: Pasted, secrets: Sequence[Secret], now: float) -> Check:
    """Return what a receiver with one of `secrets` would find at `now`, in Unix seconds."""
    standard = _standard(request, secrets)
    age = None
    if standard.reason in ("", "wrong_signature"):
        age = round(now - int(request.headers["webhook-timestamp"]))
    return Check(
        standard,
        _of_body(request, secrets),
        age if age is not None and age > TOLERANCE else None,
        -age if age is not None and age < -TOLERANCE else None,
    )


def _standard(request: Pasted, secrets: Sequence[Secret]) -> Verdict:
    header = "webhook-signature"
    event_id, sent_at, signatures = (
        request.headers.get(name, "") for name in ("webhook-id", "webhook-timestamp", header)
    )
    if not (event_id and sent_at and signatures):
        return Verdict(header, "missing_header")
    if not DIGITS.fullmatch(sent_at):
        return Verdict(header, "malformed_timestamp")
    signatures_v1 = [one for one in signatures.split() if one.startswith("v1,")]
    if not signatures_v1:
        return Verdict(header, "no_v1_signature")
    return _judged(
        header, signatures_v1, request.body, secrets,
        lambda secret, body: sign_standard((secret,), event_id, int(sent_at), body),
    )  # fmt: skip


def _of_body(request: Pasted, secrets: Sequence[Secret]) -> Verdict:
    header = "x-webhook-signature"
    signature = request.headers.get(header, "")
    if not signature:
        return Verdict(header, "missing_header")
    return _judged(header, [signature], request.body, secrets, sign_body)


def _judged(
    header: str,
    signatures: Sequence[str],
    body: bytes,
    secrets: Sequence[Secret],
    sign: Callable[[str, bytes], str],
) -> Verdict:
    for text, reformatted in ((body, False), (_compact(body), True)):
        for secret in secrets:
            right = sign(secret.text, text).encode()
            if any(
                hmac.compare_digest(right, one.encode("utf-8", "replace")) for one in signatures
            ):
                return Verdict(header, "", secret.place, reformatted)
    return Verdict(header, "wrong_signature")


def _compact(body: bytes) -> bytes:
    """Return a JSON body as Carteiro writes it; any other body unchanged."""
    try:
        return encode(json.loads(body))
    except (ValueError, RecursionError):
        return body
