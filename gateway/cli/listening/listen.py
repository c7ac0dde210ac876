"""The command `carteiro listen`: prints each event, and signs, verifies and forwards it."""

import os
import sys
from argparse import Namespace
from dataclasses import dataclass
from datetime import datetime

import aiohttp
import msgspec
from yarl import URL

from gateway import texts
from gateway.cli import tables
from gateway.cli.commands import Say
from gateway.cli.listening.source import Address, Entry, Source
from gateway.cli.server_address import server_of
from gateway.cli.signatures import fault_of
from gateway.server.config import Config
from outbox.clock import Clock, SystemClock
from outbox.durations import SECOND
from outbox.errors import CannotStart
from outbox.ids import Ids, is_id
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.egress_guard import Guard
from outbox.sending.outcome import Outcome
from outbox.sending.request import SECRET_BYTES, Header, Request, compose, new_secret, sign_standard
from outbox.sending.send import Sender
from outbox.sending.urls import Refused, check_url
from outbox.states import ERASED

KEY_VARIABLE = "CARTEIRO_KEY"
DAMAGED = "the body is no event"
EVERYWHERE = ("0.0.0.0/0", "[::/0]")

ENGLISH = texts.of("en")


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


async def listen(config: Config, arguments: Namespace, say: Say) -> None:
    """Print, and forward, the events of an account as they happen, until it is interrupted."""
    clock, ids = SystemClock(), Ids()
    key = arguments.key or os.environ.get(KEY_VARIABLE, "")
    if not key:
        raise CannotStart(f"there is no API key; give one with --key or in ${KEY_VARIABLE}")
    address = Address(server_of(config, arguments), key, arguments.types or "")
    if arguments.after and not is_id(arguments.after):
        raise CannotStart(f"--after {arguments.after!r} is not the id of an event")
    secret = arguments.secret or new_secret(ids.token(SECRET_BYTES))
    _must_sign(secret)
    how = How(secret, config.service.name, config.delivery.total_seconds)
    forwarding = Forwarding(arguments.forward or "", how, clock, ids)
    place = arguments.after or ""
    try:
        async with aiohttp.ClientSession() as http:
            source = Source(http, address, ids, _notice)
            place = place or await source.newest()
            say(f"Listening to {address.server}/api/events; interrupt to stop.")
            say(f"Signing secret: {secret}")
            async for entry, at in source.events(place):
                if entry is not None:
                    say(await _line(entry, forwarding, clock))
                    if arguments.body and entry.body is not None:
                        say(_indented(entry.body))
                place = at
    finally:
        await forwarding.close()
        if place:
            _notice(f"To continue here: --after {place}")


async def _line(entry: Entry, forwarding: Forwarding, clock: Clock) -> str:
    """Return the line of one event, after it is forwarded."""
    result = ERASED
    if entry.body is not None:
        body = entry.body.encode()
        try:
            outcome = await forwarding.forward(entry, body)
        except Unverified as fault:
            result = f"NOT VERIFIED: {fault}"
        except (msgspec.MsgspecError, KeyError, TypeError):
            result = DAMAGED
        else:
            result = f"verified, {ENGLISH.size(len(body))}"
            if outcome is not None:
                result = _result(outcome)
    now = datetime.fromtimestamp(clock.wall() / SECOND).strftime("%H:%M:%S")  # noqa: DTZ006 - the terminal's own time
    return tables.inert(f"{now}  {entry.event:24}  {entry.id}  {result}")


def _result(outcome: Outcome) -> str:
    status = outcome.status or ""
    if outcome.outcome == "success":
        return f"{status} in {ENGLISH.took(outcome.total_us)}"
    error = f": {outcome.failure}" if outcome.failure else ""
    return f"FAILED {status} {outcome.outcome}{error}".replace("  ", " ")


def _indented(body: str) -> str:
    text = msgspec.json.format(body, indent=2)
    return "\n".join(map(tables.inert, text.splitlines()))


def _must_sign(secret: str) -> None:
    try:
        sign_standard((secret,), "", 0, b"")
    except ValueError:
        raise CannotStart("--secret must be whsec_ and base64") from None


def _notice(line: str) -> None:
    """Print a line about the connection, apart from the events."""
    sys.stderr.write(f"carteiro: {tables.inert(line)}\n")
    sys.stderr.flush()
