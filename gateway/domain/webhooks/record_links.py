"""The addresses of records in the REST API, for deliveries that have them instead of data."""

from gateway.domain.catalogue import EVENTS
from gateway.domain.webhooks.samples import resource_of


def address(site: str, event: str, record_id: str) -> str | None:
    """Return the address of the record of an event; None for an event of no record.

    `site` is the public address of the server.
    """
    if event not in EVENTS:
        return None
    return f"{site}/api/{resource_of(event).plural}/{record_id}"
