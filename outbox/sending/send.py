"""Send one POST to a receiver under one deadline; every failure becomes an Outcome."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import ClientError

from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.sending.client_certificates import Trust
from outbox.sending.connect import Dialler
from outbox.sending.egress_guard import Guard
from outbox.sending.oddities import NOTES, joined
from outbox.sending.outcome import (
    REQUEST_TIMEOUT,
    Outcome,
    gone_stale,
    judge,
    name_failure,
    no_status,
)
from outbox.sending.pool import Route
from outbox.sending.request import DIRECT, Via
from outbox.sending.response import LARGEST_BODY
from outbox.sending.urls import Refused, check_url
from outbox.sending.wire import Progress
from outbox.states import OutcomeName

BODY_SECONDS = 1.0
"""Additional seconds for a body after the head has decided the outcome."""
MOST_ROUTES = 20_000
POST = "POST"
TICK_SECONDS = 0.05
"""Maximum delay of a deadline, in seconds."""

Objection = Callable[[], str | None]
"""Called just before a request is written; returns why it must not be sent, or None."""


class CutShort(asyncio.CancelledError):
    """The send was cancelled after the head of its response, which decides its `outcome`."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("cancelled while the body of the response was read")
        self.outcome = outcome


class _Withdrawn(Exception):
    """The request was withdrawn before its connection was ready."""


def no_objection() -> None:
    """Allow every request."""


class Sender:
    """Sends for one process and keeps its connections alive between sends.

    `trust` makes the TLS contexts; the default ones trust the system's authorities. When a new
    connection has a descriptor from `scarce_from` on, idle ones close; by default that
    is three fourths of the process's limit.
    """

    def __init__(
        self,
        guard: Guard,
        clock: Clock,
        trust: Trust | None = None,
        scarce_from: float | None = None,
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._dialler = Dialler(guard, clock, trust, scarce_from)
        self._deadlines = Deadlines(clock)
        self._routes: OrderedDict[str | tuple[str, Via], Route] = OrderedDict()

    async def send(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],
        body: bytes,
        timeout_s: float,
        *,
        fresh: bool = False,
        objection: Objection = no_objection,
        via: Via = DIRECT,
        method: str = POST,
    ) -> Outcome:
        """POST `body`, or send it by another `method`; return the outcome.

        Raise only ValueError, for headers that cannot be sent.

        `headers` are all but Host and Content-Length. `fresh` uses no kept-alive connection and
        leaves none. `via` is the way to the receiver. An `objection` ends the attempt as
        `aborted` with nothing sent. Cancellation aborts the connection; once a response has begun
        it raises CutShort.
        """
        began = self._clock.monotonic()
        progress = Progress(began, began + timeout_s)
        try:
            route = self._route(url, via)
        except Refused as refused:
            return self._outcome(progress, "blocked", str(refused))
        head = route.head(headers, len(body))
        if method != POST:
            head = method.encode("ascii") + head[len(POST) :]
        progress.tls = route.tls
        task = asyncio.current_task()
        assert task is not None
        cancelled = task.cancelling()
        self._deadlines.watch(task, progress)
        try:
            await self._exchange(route, head, body, progress, fresh, objection)
        except asyncio.CancelledError:
            if not progress.late or task.cancelling() > cancelled + 1:
                if progress.head is None:
                    raise
                raise CutShort(self._answered(progress)) from None
            if progress.head is None:
                return self._outcome(progress, *name_failure(TimeoutError(), progress))
        except _Withdrawn as why:
            return self._outcome(progress, "aborted", str(why))
        except Exception as error:  # noqa: BLE001 - every failure of a receiver gets a name
            if progress.head is None:
                stale = isinstance(error, ClientError | OSError) and gone_stale(progress)
                return self._outcome(progress, *name_failure(error, progress), stale=stale)
        finally:
            self._deadlines.forget(task)
            if progress.late:
                task.uncancel()
        return self._answered(progress)

    async def close(self) -> None:
        """Close all connections."""
        self._deadlines.close()
        await self._dialler.close()

    def _route(self, url: str, via: Via) -> Route:
        key = url if via is DIRECT else (url, via)
        route = self._routes.get(key)
        if route is None:
            target = check_url(url, self._guard.rules)
            if via.proxy is not None and via.proxy not in self._guard.rules.proxies:
                # Never without the proxy: its owner does not want the receiver to see this network.
                raise Refused(f"the operator has no proxy {via.proxy} any more", "spelling")
            route = self._routes[key] = Route(target, via)
            if len(self._routes) > MOST_ROUTES:
                self._routes.popitem(last=False)
        return route

    async def _exchange(
        self,
        route: Route,
        head: bytes,
        body: bytes,
        progress: Progress,
        fresh: bool,
        objection: Objection,
    ) -> None:
        if fresh:
            route = route.apart()
        wire = self._dialler.pooled(route, progress)
        if wire is None:
            wire = await self._dialler.connect(route, progress)
        why = objection()
        if why is not None:
            self._dialler.drop(route, wire)
            raise _Withdrawn(why)
        try:
            wire.begin()
            wire.write(head, body)
            progress.sent = self._clock.monotonic()
            progress.head, reading, progress.body = await wire.answer()
            if reading is None:
                progress.complete = True
            else:
                progress.ends = min(progress.ends, self._clock.monotonic() + BODY_SECONDS)
                await wire.body(reading)
        finally:
            if progress.head is not None and wire.reading is not None:
                progress.complete = wire.reading.complete
                progress.body = bytes(wire.reading.body)
            if (
                progress.complete and not wire.should_close and not fresh
                # A response of this kind ends the connection for being idle.
                and progress.head is not None and progress.head.status != REQUEST_TIMEOUT
            ):  # fmt: skip
                wire.rest()
                self._dialler.keep(route, wire)
            else:
                # Not close(), which would wait for a receiver that may never read the bytes.
                wire.abort()
                self._dialler.drop(route, wire)

    def _answered(self, progress: Progress) -> Outcome:
        head, wire = progress.head, progress.wire
        assert head is not None
        assert wire is not None
        name = judge(head.status)
        odd = wire.reading.notes if wire.reading is not None else []
        stale = head.status == REQUEST_TIMEOUT and wire.uses > 1
        if stale:
            odd.append(NOTES["repeated"])
        error = joined(odd) if odd else None
        if name == "protocol_error":
            error = no_status(head.status)
        outcome = self._outcome(progress, name, error, stale=stale)
        outcome.status = head.status
        outcome.retry_after = head.retry_after
        outcome.response_headers = head.headers
        outcome.truncated = not progress.complete
        return outcome

    def _outcome(
        self, progress: Progress, name: OutcomeName, error: str | None, *, stale: bool = False
    ) -> Outcome:
        """Return the outcome of an attempt, so far without what a response says."""
        wire = progress.wire
        now = self._clock.monotonic()
        # A failed step lasted until now.
        connected = progress.connected
        if connected is None and progress.stage == "connect" and progress.refused is None:
            connected = now
        secured = now if progress.stage == "tls" else progress.secured
        resolved_in, dialled = progress.resolved_in, progress.dialled
        return Outcome(
            outcome=name,
            error=error,
            address=None if wire is None else wire.address,
            dns_us=None if resolved_in is None else round(resolved_in * SECOND),
            connect_us=None if dialled is None else _between(dialled, connected),
            tls_us=None if progress.connected is None else _between(progress.connected, secured),
            first_byte_us=None if wire is None else _between(progress.sent, wire.first_byte),
            total_us=round((now - progress.began) * SECOND),
            response_body=progress.body[:LARGEST_BODY],
            reused=wire is not None and wire.uses > 1,
            stale=stale,
        )


def _between(start: float, end: float | None) -> int | None:
    return None if end is None else max(round((end - start) * SECOND), 0)


class Deadlines:
    """Cancels the tasks of sends at their deadlines; the task itself clears the cancellation.

    One timer for all: a timer for each would cost more than parsing its response.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[asyncio.Task[Any], Progress] = {}
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, task: asyncio.Task[Any], progress: Progress) -> None:
        """Cancel `task` once `progress.ends` is past."""
        self._running[task] = progress
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._sweep)

    def forget(self, task: asyncio.Task[Any]) -> None:
        """Stop watching `task`."""
        del self._running[task]

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for task, progress in self._running.items():
            if progress.ends <= now and not progress.late:
                progress.late = True
                task.cancel()
        if self._running:
            self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._sweep)
