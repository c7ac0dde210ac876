"""The command `carteiro listen`."""

import os
import sys
from argparse import Namespace
from datetime import datetime

import aiohttp
import msgspec

from gateway import texts
from gateway.cli import tables
from gateway.cli.commands import Say
from gateway.cli.listening.forwarding import Forwarding, How, Unverified
from gateway.cli.listening.source import Address, Entry, Source
from gateway.cli.server_address import server_of
from gateway.server.config import Config
from outbox.clock import Clock, SystemClock
from outbox.durations import SECOND
from outbox.errors import CannotStart
from outbox.ids import Ids, is_id
from outbox.sending.outcome import Outcome
from outbox.sending.request import SECRET_BYTES, new_secret, sign_standard
from outbox.states import ERASED

KEY_VARIABLE = "CARTEIRO_KEY"
DAMAGED = "the body is no event"

ENGLISH = texts.of("en")


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
