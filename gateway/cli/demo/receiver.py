"""A webhook receiver as a customer would write it: verifies and records every request.

It fails some requests on purpose, by path, to show retries.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from aiohttp import web

from gateway.cli.signatures import fault_of
from outbox.clock import Clock
from outbox.durations import SECOND


@dataclass(slots=True)
class Inbox:
    """What one webhook received. Counts are of requests unless the comment says otherwise."""

    name: str
    events: tuple[str, ...]
    """The events that its webhook subscribes to."""
    manner: str
    """Its behaviour, as text for people."""
    fail_every: int = 0
    """Refuse the first request of every n-th event; 0 refuses none."""
    secret: str = ""
    requests: int = 0
    retries: int = 0
    refused: int = 0
    verified: int = 0
    bad: list[str] = field(default_factory=list)
    accepted: Counter[str] = field(default_factory=Counter)
    """Event id -> number of 2xx responses; 1 is correct."""
    arrived: dict[tuple[str, str], str] = field(default_factory=dict)
    """(event name, record id) -> event id, for accepted events."""
    seen: set[str] = field(default_factory=set)
    """Ids of all received events, accepted or not."""


class Receiver:
    """Inboxes behind one loopback server, at `/<name of the inbox>`."""

    def __init__(
        self,
        inboxes: list[Inbox],
        clock: Clock,
        walls: Callable[[], tuple[int, ...]] | None = None,
    ) -> None:
        """Judge timestamps by `clock`, or by each of `walls`: a request may carry any of them."""
        self.inboxes = {inbox.name: inbox for inbox in inboxes}
        self.changed = asyncio.Event()
        """Set on each accepted request; a waiting task clears it."""
        self._walls = walls or (lambda: (clock.wall(),))
        self._thawed: asyncio.Event | None = None
        self.held = asyncio.Event()
        """Set while a frozen receiver holds a request."""
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> int:
        """Listen on a free port of 127.0.0.1 and return the port."""
        app = web.Application()
        app.router.add_post("/{inbox}", self._receive)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self.port

    async def stop(self) -> None:
        self.thaw()
        if self._runner is not None:
            await self._runner.cleanup()

    def freeze(self) -> None:
        """Take requests without an answer until `thaw`."""
        self._thawed = asyncio.Event()

    def thaw(self) -> None:
        """Cut the requests that were taken, and answer new ones."""
        if self._thawed is not None:
            self._thawed.set()
            self._thawed = None
            self.held.clear()

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        inbox = self.inboxes.get(request.match_info["inbox"])
        if inbox is None:
            return web.Response(status=404)
        body = await request.read()
        inbox.requests += 1
        # Test events of the console, some badly signed to certify the receiver, are no deliveries.
        tests = "X-Webhook-Test" in request.headers
        if self._thawed is not None:
            self.held.set()
            await self._thawed.wait()
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=503)
        faults = [
            fault_of(request.headers, body, inbox.secret, wall / SECOND) for wall in self._walls()
        ]
        fault = None if None in faults else faults[0]
        if fault:
            if not tests:
                inbox.bad.append(fault)
            return web.Response(status=401, text=fault)
        if tests:
            return web.Response(text="thanks")
        inbox.verified += 1
        event_id = request.headers["X-Webhook-Id"]
        if event_id in inbox.seen:
            inbox.retries += 1
        else:
            inbox.seen.add(event_id)
            if inbox.fail_every and len(inbox.seen) % inbox.fail_every == 0:
                inbox.refused += 1
                return self._refuse(inbox, request)
        message = msgspec.json.decode(body)
        inbox.accepted[event_id] += 1
        inbox.arrived[message["event"], message["data"]["id"]] = event_id
        self.changed.set()
        return web.Response(text="thanks")

    def _refuse(self, inbox: Inbox, request: web.Request) -> web.Response:
        """Refuse in turn with 500, with 503, or by closing the connection without a response."""
        turn = inbox.refused % 3
        if turn == 2 and request.transport is not None:
            request.transport.abort()
        return web.Response(status=(500, 503, 500)[turn], text="refused on purpose")
