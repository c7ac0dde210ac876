"""Keeps the response to a write as text, and restores it for a repeated Idempotency-Key."""

import msgspec

from gateway.rest.record_json import Response


def keep(response: Response) -> str:
    """Return a response as text: JSON of status, headers and body."""
    members = (response.status, response.headers, response.body.decode())
    return msgspec.json.encode(members).decode()


def restore(text: str) -> Response:
    """Return the response of a repeated request."""
    status, headers, body = msgspec.json.decode(text, type=tuple[int, dict[str, str], str])
    return Response(status, headers, body.encode(), replayed=True)
