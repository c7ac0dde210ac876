"""The record of a served request, for its log line and its span."""

import msgspec


class Served(msgspec.Struct, omit_defaults=True, gc=False):
    """A request with its response."""

    surface: str
    method: str
    route: str
    """Its template, or `unmatched`."""
    path: str
    status: int
    duration_ms: float
    request_id: str
    trace_id: str
    span_id: str
    address: str
    actor: str | None = None
    """The id of the caller's key, or of the caller."""
