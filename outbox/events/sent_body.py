"""The bytes of a request, as they follow from its event and the headers in the log."""

from collections.abc import Sequence

from outbox.events import cloud_events, thin
from outbox.sending.request import RECORD_URL, Header


def sent(whole: bytes, headers: Sequence[Header], record_id: str, occurred_at: int) -> bytes:
    """Return the body of a request with these headers; `whole` is the body of its event."""
    named = dict(headers)
    url = named.get(RECORD_URL)
    if url is not None:
        whole = thin(named["X-Webhook-Event"], int(named["X-Webhook-Timestamp"]), record_id, url)
    return cloud_events.sent(whole, named, record_id, occurred_at)
