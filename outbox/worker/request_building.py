"""Build a request from a claimed delivery and its webhook: decrypt and check the secrets.

Decrypted webhooks are cached by version, so that a secret is decrypted once and not per delivery.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outbox.durations import SECOND
from outbox.events import cloud_events, thin
from outbox.queue.state.claimed_deliveries import MOST_ATTEMPTS, Claimed, Endpoint
from outbox.queue.state.policy import Schedule, parse_schedule
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.request import DIRECT, EventForm, Request, Via, check_headers, sign_standard
from outbox.webhooks import signing_keys
from outbox.webhooks.sealed_settings import open_certificate, open_headers, open_oauth2
from outbox.webhooks.secrets import KeyRing, SealBroken

REMEMBERED = 10_000

Links = Callable[[str, str], str | None]
"""Takes the name of an event and the id of its record, and returns the record's address."""


class Unsendable(Exception):
    """This delivery can never be sent; the text is the reason for its owner."""


class Unreadable(Exception):
    """The webhook cannot sign, because one of its sealed values cannot be decrypted here now.

    The text is the reason for its owner.
    """


class Erased(Exception):
    """The person of this delivery was erased."""


@dataclass(frozen=True, slots=True)
class _Webhook:
    version: int
    secrets: tuple[str, ...]
    old_secret: str | None
    old_secret_until: int
    headers: tuple[tuple[str, str], ...]
    schedule: Schedule
    timeout: float
    via: Via
    oauth2: ClientCredentials | None

    def lacks_old_secret(self, now: int) -> bool:
        """Return whether the old secret signs now, but was left out when the webhook was opened.

        The wall clock was ahead then.
        """
        return self.old_secret is None and now < self.old_secret_until


class RequestBuilder:
    """Builds requests. `timeout` (seconds) and `schedule` apply where a webhook has none.

    `links` returns the address of a record for thin events; `site` is the public address of the
    server, for CloudEvents and handshakes.
    """

    def __init__(
        self,
        ring: KeyRing,
        timeout: float,
        schedule: Schedule,
        links: Links | None = None,
        site: str | None = None,
    ) -> None:
        self._links = links
        self._site = site
        self._ring = ring
        self._timeout = timeout
        self._schedule = schedule
        self._webhooks: dict[str, _Webhook] = {}
        self._signing_keys: tuple[str, tuple[Ed25519PrivateKey, ...]] = "", ()

    def request(self, delivery: Claimed, endpoint: Endpoint, now: int) -> tuple[Request, Schedule]:
        """Return the request and its schedule; `now` is wall microseconds.

        Raise Unsendable, Unreadable, Erased.
        """
        if delivery.attempt.number >= MOST_ATTEMPTS:
            raise Unsendable("the number of attempts is damaged")
        event = delivery.event
        if event.erased:
            raise Erased
        if event.body is None:
            raise Unsendable("the body of the event is missing")
        if hashlib.sha256(event.body).hexdigest() != event.body_digest:
            raise Unsendable("the body of the event is damaged")
        webhook = self._webhooks.get(endpoint.id)
        if webhook is None or webhook.version != endpoint.version or webhook.lacks_old_secret(now):
            webhook = self._open(endpoint, now)
        secrets = webhook.secrets
        if webhook.old_secret is not None and now < webhook.old_secret_until:
            secrets = (*secrets, webhook.old_secret)
        request = Request(
            event_id=event.id,
            event_name=event.name,
            timestamp=event.occurred_at // SECOND,
            record_version=event.record_version,
            attempt=delivery.attempt.number,
            origin=delivery.origin,
            url=endpoint.url,
            body=event.body,
            secrets=secrets,
            headers=webhook.headers,
            traceparent=event.traceparent,
            timeout_s=webhook.timeout,
            sequence=delivery.sequence,
            repeats=delivery.repeats,
            snapshot=event.snapshot,
            signing_keys=()
            if endpoint.signing_keys is None
            else self._opened_keys(endpoint.signing_keys),
            via=webhook.via,
            record_url=None,
            oauth2=webhook.oauth2,
        )
        if endpoint.thin:
            self._make_thin(request, event.record_id)
        if endpoint.format is not None:
            self._make_cloud_event(request, delivery, endpoint.format)
        if endpoint.handshake is not None:
            request.asks_as = urlsplit(self._public("handshakes")).hostname
            request.asks_rate = endpoint.handshake
        return request, webhook.schedule

    def _make_thin(self, request: Request, record_id: str) -> None:
        """Replace the data in the body by the address of the record."""
        url = None if self._links is None else self._links(request.event_name, record_id)
        if url is None:
            # Never the data instead: the owner does not want it to leave.
            raise Unreadable(f"{request.event_name} has no address for thin events here")
        request.record_url = url
        request.body = thin(request.event_name, request.timestamp, record_id, url)

    def _make_cloud_event(self, request: Request, delivery: Claimed, mode: str) -> None:
        """Give the request a form of CloudEvents."""
        own = next((known for known in cloud_events.MODES if known == mode), None)
        if own is None:
            raise Unsendable("the webhook's format is damaged")
        source = cloud_events.source_of(self._public("CloudEvents"), delivery.owner_id)
        try:
            cloud_events.apply(
                request,
                EventForm(own, source),
                delivery.event.record_id,
                delivery.event.occurred_at,
            )
        except ValueError as error:
            raise Unsendable(f"the body of the event is no JSON of an event: {error}") from None

    def _public(self, purpose: str) -> str:
        if self._site is None:
            raise Unreadable(f"this server has no public address for {purpose}")
        return self._site

    def _open(self, endpoint: Endpoint, now: int) -> _Webhook:
        with _damaged("secret"):
            secrets = tuple(
                self._secret(sealed, endpoint.id)
                for sealed in (endpoint.secret, endpoint.staged_secret)
                if sealed is not None
            )
            old = None
            if endpoint.old_secret is not None and now < (endpoint.old_secret_until or 0):
                old = self._secret(endpoint.old_secret, endpoint.id)
        with _damaged("headers"):
            headers = tuple(open_headers(endpoint.headers, self._ring, endpoint.id))
            check_headers(headers)
        with _damaged("certificate"):
            certificate = open_certificate(endpoint.certificate, None, self._ring, endpoint.id)
            pem = None if certificate is None else certificate.pem
            via = Via(pem, endpoint.proxy) if pem or endpoint.proxy else DIRECT
        with _damaged("OAuth2 settings"):
            oauth2 = open_oauth2(endpoint.oauth2, self._ring, endpoint.id)
        with _damaged("schedule"):
            schedule = parse_schedule(endpoint.schedule) if endpoint.schedule else self._schedule
        webhook = _Webhook(
            version=endpoint.version,
            secrets=secrets,
            old_secret=old,
            old_secret_until=(endpoint.old_secret_until or 0) if endpoint.old_secret else 0,
            headers=headers,
            schedule=schedule,
            timeout=endpoint.timeout_ms / 1000 if endpoint.timeout_ms else self._timeout,
            via=via,
            oauth2=oauth2,
        )
        if len(self._webhooks) >= REMEMBERED:
            self._webhooks.clear()
        self._webhooks[endpoint.id] = webhook
        return webhook

    def _opened_keys(self, text: str) -> tuple[Ed25519PrivateKey, ...]:
        """Return the keys of the installation; they are decrypted once, because all share them."""
        if not self._signing_keys[1] or text != self._signing_keys[0]:
            try:
                self._signing_keys = text, signing_keys.of_endpoint(text, self._ring)
            except SealBroken as error:
                raise Unreadable(
                    f"the signing keys of the installation cannot be decrypted: {error}"
                ) from None
        return self._signing_keys[1]

    def _secret(self, sealed: bytes, webhook_id: str) -> str:
        secret = self._ring.open(sealed, webhook_id).decode()
        # Sign once here, because a secret that cannot sign would fail each attempt.
        sign_standard((secret,), "", 0, b"")
        return secret


@contextmanager
def _damaged(column: str) -> Iterator[None]:
    """Report any error in the block as damage to this column of the webhook."""
    try:
        yield
    except SealBroken as error:
        raise Unreadable(f"the webhook's {column} cannot be decrypted: {error}") from None
    except UnicodeDecodeError:
        raise Unsendable(f"the webhook's {column} cannot be read: it is not text") from None
    except (ValueError, TypeError, ArithmeticError) as error:
        raise Unsendable(f"the webhook's {column} cannot be read: {error}") from None
