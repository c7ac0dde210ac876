"""Verifies the signatures of a request as a customer would: by the documented rules.

It shares no code with the sender.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping

TOLERANCE = 300
NEEDED = ("X-Webhook-Id", "X-Webhook-Attempt", "webhook-timestamp")


def fault_of(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> str | None:
    """Return the fault of the headers or signatures, or None; `now` is seconds UTC."""
    for name in NEEDED:
        if name not in headers:
            return f"{name} is missing"
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(headers.get("X-Webhook-Signature", ""), f"sha256={expected}"):
        return "X-Webhook-Signature does not match"
    message_id, timestamp = headers.get("webhook-id", ""), headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    if f"v1,{digest}" not in headers.get("webhook-signature", "").split():
        return "webhook-signature does not match"
    if not timestamp.isdigit() or abs(now - int(timestamp)) > TOLERANCE:
        return "webhook-timestamp is more than five minutes off"
    return None
