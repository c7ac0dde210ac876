"""A Sender that may connect to loopback."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from outbox.clock import Clock, SystemClock
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.client_certificates import Trust
from outbox.sending.egress_guard import Guard
from outbox.sending.lookups import LookUp, ask_system
from outbox.sending.outcome import Outcome
from outbox.sending.request import DIRECT, Via
from outbox.sending.send import Sender
from tests.support.waiting import HANG_SECONDS

LOOPBACK = Rules(allow_http=True, allow=(parse_place("127.0.0.0/8"), parse_place("::1")))
HEADERS = [("Content-Type", "application/json"), ("X-Webhook-Event", "contact.created")]
BODY = b'{"event":"contact.created","timestamp":1760000000,"data":{}}'


@asynccontextmanager
async def sender(
    rules: Rules = LOOPBACK,
    *,
    look_up: LookUp = ask_system,
    tls: ssl.SSLContext | None = None,
    trust: Trust | None = None,
    guarded: type[Guard] = Guard,
    scarce_from: float | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Sender]:
    clock = clock or SystemClock()
    guard = guarded(rules, clock, look_up)
    made = Sender(guard, clock, trust or (None if tls is None else lambda: tls), scarce_from)
    try:
        yield made
    finally:
        await made.close()
        await guard.close()


async def post(
    made: Sender,
    url: str,
    *,
    body: bytes = BODY,
    timeout_s: float = HANG_SECONDS,
    fresh: bool = False,
    via: Via = DIRECT,
) -> Outcome:
    return await made.send(url, HEADERS, body, timeout_s, fresh=fresh, via=via)
