"""Seals and opens the settings of a webhook that are secret. Opening raises SealBroken."""

import json
from collections.abc import Sequence

from outbox.sending import client_credentials
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.client_credentials import ClientCredentials
from outbox.webhooks.secrets import KeyRing


def seal_headers(
    headers: Sequence[tuple[str, str]], ring: KeyRing, webhook_id: str
) -> bytes | None:
    """Encrypt custom headers for storage, because one of them may be an Authorization."""
    return ring.seal(json.dumps(headers).encode(), webhook_id) if headers else None


def open_headers(sealed: bytes | None, ring: KeyRing, webhook_id: str) -> list[tuple[str, str]]:
    """Decrypt the custom headers of `Webhook.headers`."""
    if sealed is None:
        return []
    return [(name, value) for name, value in json.loads(ring.open(sealed, webhook_id))]


def open_certificate(
    sealed: bytes | None, until: int | None, ring: KeyRing, webhook_id: str
) -> ClientCertificate | None:
    """Decrypt the client certificate of `Webhook.certificate`."""
    if sealed is None:
        return None
    return ClientCertificate(ring.open(sealed, webhook_id).decode("ascii"), until or 0)


def open_oauth2(sealed: bytes | None, ring: KeyRing, webhook_id: str) -> ClientCredentials | None:
    """Decrypt the client credentials of `Webhook.oauth2`."""
    return None if sealed is None else client_credentials.stored(ring.open(sealed, webhook_id))
