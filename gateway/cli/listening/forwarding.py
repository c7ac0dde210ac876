"""Signs an event of the feed, verifies the signatures, and forwards it as a delivery."""

from dataclasses import dataclass

import msgspec
from yarl import URL

from gateway.cli.listening.source import Entry
from gateway.cli.signatures import fault_of
from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.egress_guard import Guard
from outbox.sending.outcome import Outcome
from outbox.sending.request import Header, Request, compose
from outbox.sending.send import Sender
from outbox.sending.urls import Refused, check_url

EVERYWHERE = ("0.0.0.0/0", "[::/0]")


class Unverified(Exception):
    """A signature of ours does not verify."""


@dataclass(frozen=True, slots=True)
class How:
    """How requests are signed and sent. `timeout` is in seconds."""

    secret: str
    service: str
    timeout: float


class Forwarding:
    """Sends events to one URL of this machine or its network, over connections kept alive."""

    def __init__(self, url: str, how: How, clock: Clock, ids: Ids) -> None:
        """Raise CannotStart for a URL that cannot be used; it runs on the event loop."""
        self._url = url
        self._how = how
        self._clock = clock
        self._ids = ids
        self._sender: Sender | None = None
        if url:
            guard = Guard(_rules(url), clock)
            self._sender = Sender(guard, clock)

    async def forward(self, entry: Entry, body: bytes) -> Outcome | None:
        """Sign, verify and send an event; return None without a URL. Raise Unverified."""
        headers = self._signed(entry, body)
        if self._sender is None:
            return None
        outcome = await self._sender.send(self._url, headers, body, self._how.timeout)
        if outcome.stale:
            # The receiver closed an idle connection; a delivery is sent again at once too.
            outcome = await self._sender.send(
                self._url, headers, body, self._how.timeout, fresh=True
            )
        return outcome

    def _signed(self, entry: Entry, body: bytes) -> list[Header]:
        now = self._clock.wall()
        timestamp = msgspec.json.decode(body)["timestamp"]
        request = Request(
            event_id=entry.id,
            event_name=entry.event,
            timestamp=timestamp,
            record_version=entry.record_version,
            attempt=1,
            origin="event",
            url=self._url,
            body=body,
            secrets=(self._how.secret,),
        )
        headers = compose(
            request, service=self._how.service, now_wall=now, span_id=self._ids.token(8).hex()
        )
        fault = fault_of(dict(headers), body, self._how.secret, now / SECOND)
        if fault is not None:
            raise Unverified(fault)
        return headers

    async def close(self) -> None:
        if self._sender is not None:
            await self._sender.close()


def _rules(url: str) -> Rules:
    """Return rules that allow this URL: its user has chosen it, for a program of their own."""
    try:
        port = URL(url).port
        if port is None:
            raise ValueError
        places = tuple(parse_place(f"{network}:{port}") for network in EVERYWHERE)
        rules = Rules(allow_http=True, allow=places)
        check_url(url, rules)
    except Refused as refused:
        raise CannotStart(f"--forward {url}: {refused}") from None
    except ValueError:
        raise CannotStart(
            f"--forward {url}: it is not a URL such as http://localhost:9000"
        ) from None
    return rules
