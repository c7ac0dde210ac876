"""Build the requests of a certification: signed as a delivery is, then changed where a check asks.

Each right request is composed by the function of the deliveries, so that it has all their headers.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.events import cloud_events, message, thin
from outbox.ids import Ids
from outbox.sending.request import Header, Request, compose, key_of, sign_body

OTHER_BYTES = 32


@dataclass(frozen=True, slots=True)
class Specimen:
    """The name of an event and sample `data` for it."""

    event: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Material:
    """The events that a certification sends; all of them are samples."""

    samples: tuple[Specimen, ...]
    """One of each event that a receiver may get; most checks use the first."""
    letters: Specimen
    """One with letters beyond ASCII, quotes and slashes."""
    largest: Specimen
    """One as large as an event of the product can be."""


@dataclass(frozen=True, slots=True)
class Post:
    """One request: the id of its event, its headers, its body."""

    event_id: str
    headers: tuple[Header, ...]
    body: bytes

    def value(self, name: str) -> str:
        """Return the value of a header by its name in any case; empty without one."""
        return next((value for n, value in self.headers if n.lower() == name), "")

    def having(self, **values: str | None) -> Post:
        """Return it with other values of headers; None removes one, `_` stands for `-`."""
        wanted = {name.replace("_", "-"): value for name, value in values.items()}
        named = {name.lower() for name in wanted}
        rest = [header for header in self.headers if header[0].lower() not in named]
        new = [(name, value) for name, value in wanted.items() if value is not None]
        return replace(self, headers=(*rest, *new))

    def spelled(self, *, upper: bool) -> Post:
        """Return it with the names of its headers in capitals, or without any."""
        names = ((n.upper() if upper else n.lower(), value) for n, value in self.headers)
        return replace(self, headers=tuple(names))


class Kit:
    """Builds the posts for one receiver, whose secret is the first one of `template`."""

    def __init__(
        self, template: Request, material: Material, service: str, clock: Clock, ids: Ids
    ) -> None:
        self.material = material
        self.secret = template.secrets[0]
        self.other = f"whsec_{base64.b64encode(ids.token(OTHER_BYTES)).decode()}"
        """A secret that the receiver does not have."""
        self._template = template
        self._service = service
        self._clock = clock
        self._ids = ids

    def post(
        self,
        specimen: Specimen | None = None,
        *,
        attempt: int = 1,
        version: int = 1,
        event_age: int = 0,
        age: int = 0,
        secrets: tuple[str, ...] = (),
    ) -> Post:
        """Return a new test event, signed `age` seconds ago; the event is `event_age` s old."""
        now = self._clock.wall()
        at = now - event_age * SECOND
        given = specimen or self.material.samples[0]
        request = replace(
            self._template, event_id=self._ids.new(now), event_name=given.event,
            timestamp=at // SECOND, record_version=version, attempt=attempt, origin="test",
            body=self._body(given, at), secrets=secrets or (self.secret,),
            signing_keys=() if secrets == (self.other,) else self._template.signing_keys,
        )  # fmt: skip
        if request.form is not None:
            record_id = str(given.data["id"])
            cloud_events.apply(request, request.form, record_id, at)
        return self._composed(request, now - age * SECOND)

    def again(self, post: Post, attempt: int) -> Post:
        """Return a later attempt of the same event, with the same id and body."""
        request = replace(
            self._template, event_id=post.event_id, event_name=post.value("x-webhook-event"),
            timestamp=int(post.value("x-webhook-timestamp")), attempt=attempt, origin="test",
            record_version=int(post.value("x-webhook-record-version")), body=post.body,
            secrets=(self.secret,), context=cloud_events.context_of(post.headers),
        )  # fmt: skip
        return self._composed(request, self._clock.wall())

    def signed(self, post: Post, moment: str, event_id: str = "") -> Post:
        """Return it signed anew at `moment`, the text of a timestamp, by the receiver's secret."""
        mac = self.mac(post.body, moment, event_id or post.event_id)
        return post.having(webhook_timestamp=moment, webhook_signature=f"v1,{mac}")

    def mac(self, body: bytes, moment: str, event_id: str, key: bytes | None = None) -> str:
        """Return the base64 of the right HMAC, or of one by another key."""
        return base64.b64encode(self.digest(body, moment, event_id, key)).decode()

    def digest(self, body: bytes, moment: str, event_id: str, key: bytes | None = None) -> bytes:
        """Return the right HMAC, or one by another key."""
        content = f"{event_id}.{moment}.".encode() + body
        return hmac.digest(key_of(self.secret) if key is None else key, content, "sha256")

    def right_mac(self, post: Post) -> str:
        """Return the base64 that the receiver must compute for a post."""
        return self.mac(post.body, post.value("webhook-timestamp"), post.event_id)

    def forged(self, post: Post) -> Post:
        """Return it with signatures that no secret gives."""
        noise = self._ids.token(OTHER_BYTES)
        return post.having(
            webhook_signature=f"v1,{base64.b64encode(noise).decode()}",
            X_Webhook_Signature=f"sha256={noise.hex()}",
        )

    def by_key(self, post: Post, key: bytes) -> Post:
        """Return it with both signatures by these bytes as the key."""
        moment = post.value("webhook-timestamp")
        return post.having(
            webhook_signature=f"v1,{self.mac(post.body, moment, post.event_id, key)}",
            X_Webhook_Signature=f"sha256={hmac.digest(key, post.body, 'sha256').hex()}",
        )

    def secret_texts(self, post: Post) -> tuple[str, ...]:
        """Return what no response may tell: the secret, and the right signatures of a post."""
        hexes = sign_body(self.secret, post.body).partition("=")[2]
        return (self.secret, self.right_mac(post), hexes)

    def _body(self, given: Specimen, at: int) -> bytes:
        """Return the body of an event; a thin one when the webhook wants those."""
        url = self._template.record_url
        if url is None:
            return message(given.event, at, given.data)
        return thin(given.event, at // SECOND, str(given.data["id"]), url)

    def _composed(self, request: Request, moment: int) -> Post:
        headers = compose(
            request, service=self._service, now_wall=moment, span_id=self._ids.token(8).hex()
        )
        return Post(request.event_id, tuple(headers), request.body)
