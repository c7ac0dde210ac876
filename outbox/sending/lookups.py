"""Resolve host names: one look-up per host at a time, cached, never on the event loop."""

import asyncio
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from outbox.clock import Clock

LookUp = Callable[[str], Sequence[str]]
"""Takes a host name, blocks, and returns its addresses or raises LookupFailed."""

DEADLINE_SECONDS = 5.0
MOST_THREADS = 32
MOST_SUSPECTS = 16
"""Of these, threads for hosts whose last look-up failed: dead names leave threads to the others."""
SLOW_SECONDS = 1.0
MOST_SLOW = 256
"""Look-ups that last longer than this count as neither, up to a maximum."""
MOST_SLOW_SUSPECTS = 192
"""Of these, those of suspects: dead names leave room to names that are only slow."""
FRESH_SECONDS = 30.0
STALE_SECONDS = 600.0
"""How long a cached result is used while the name servers give none."""
FAILED_SECONDS = 30.0
REFRESH_SECONDS = 0.5
"""How long to wait for a new result while there is a cached one."""
MOST_HOSTS = 10_000
NEVER = float("-inf")
TOO_SLOW = "the name servers did not respond in time"
FAILED = "the name look-up failed"
NO_HOST = "no such host"


class LookupFailed(OSError):
    """A host name that does not resolve; the text gives the reason in a few words."""


def ask_system(host: str) -> Sequence[str]:
    """Return the system's addresses of `host`, in its order. Raise LookupFailed."""
    try:
        answers = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise LookupFailed(_reason(error)) from None
    except (OSError, UnicodeError):
        raise LookupFailed(FAILED) from None
    return [str(sockaddr[0]) for _, _, _, _, sockaddr in answers]


def _reason(error: socket.gaierror) -> str:
    if error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", None)):
        return NO_HOST
    if error.errno == socket.EAI_AGAIN:
        return "the name servers did not respond"
    return FAILED


@dataclass(slots=True)
class _Host:
    """The state of one name."""

    addresses: Sequence[str] = ()
    answered_at: float = NEVER
    error: str | None = None
    failed_at: float = NEVER
    running: asyncio.Future[None] | None = field(default=None, repr=False)


class Lookups:
    """The look-ups of one process, on threads of their own.

    Daemon threads, because getaddrinfo cannot be interrupted and must not delay the exit.
    """

    def __init__(
        self, clock: Clock, look_up: LookUp = ask_system, fresh: float = FRESH_SECONDS
    ) -> None:
        self._clock = clock
        self._look_up = look_up
        self._fresh = fresh
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._threads = asyncio.Semaphore(MOST_THREADS)
        self._suspects = asyncio.Semaphore(MOST_SUSPECTS)
        self._slow = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def addresses(self, name: str) -> Sequence[str]:
        """Return all addresses of `name`. Raise LookupFailed after at most 5 s."""
        host = self._host(name)
        now = self._clock.monotonic()
        if now - host.answered_at < self._fresh:
            return host.addresses
        if host.addresses and now - host.answered_at < STALE_SECONDS:
            # The cached result is used when a new one takes long.
            if now - host.failed_at >= FAILED_SECONDS:
                await asyncio.wait({self._ask(name, host)}, timeout=REFRESH_SECONDS)
            return host.addresses
        if now - host.failed_at >= FAILED_SECONDS:
            await self._refresh(name, host)
            now = self._clock.monotonic()
        if now - host.answered_at < STALE_SECONDS:
            return host.addresses
        raise LookupFailed(host.error or FAILED)

    def age(self, name: str) -> float:
        """Return the seconds since the name servers gave the addresses of `name`, 0 for none.

        At most those for which a result is fresh: an older one is used because there is none.
        """
        host = self._hosts.get(name)
        if host is None or host.answered_at == NEVER:
            return 0.0
        return min(self._clock.monotonic() - host.answered_at, self._fresh)

    async def close(self) -> None:
        """Abandon the running look-ups; their threads end by themselves."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _host(self, name: str) -> _Host:
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host()
            if len(self._hosts) > MOST_HOSTS:
                self._hosts.popitem(last=False)
        else:
            self._hosts.move_to_end(name)
        return host

    async def _refresh(self, name: str, host: _Host) -> None:
        running = self._ask(name, host)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                # Shielded: other senders wait for the same result.
                await asyncio.shield(running)
        except TimeoutError:
            host.failed_at = self._clock.monotonic()
            host.error = TOO_SLOW

    def _ask(self, name: str, host: _Host) -> asyncio.Future[None]:
        """Return the running look-up of `host`; start one if there is none."""
        if host.running is None:
            host.running = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._run(name, host))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return host.running

    async def _run(self, name: str, host: _Host) -> None:
        try:
            addresses = await self._answer(name, suspect=host.error is not None)
            if not addresses:
                raise LookupFailed(NO_HOST)
        except LookupFailed as error:
            host.failed_at = self._clock.monotonic()
            host.error = str(error)
        except RuntimeError:
            # The system could not start a thread.
            host.failed_at = self._clock.monotonic()
            host.error = FAILED
        else:
            host.addresses = addresses
            host.answered_at = self._clock.monotonic()
            host.failed_at = NEVER
            host.error = None
        finally:
            running, host.running = host.running, None
            if running is not None and not running.done():
                running.set_result(None)

    async def _answer(self, name: str, *, suspect: bool) -> Sequence[str]:
        """Query the name servers; a slow query gives its places to others."""
        places = [self._suspects, self._threads] if suspect else [self._threads]
        most_slow = MOST_SLOW_SUSPECTS if suspect else MOST_SLOW
        answer: asyncio.Future[Sequence[str]] = asyncio.get_running_loop().create_future()
        try:
            async with AsyncExitStack() as held:
                for place in places:
                    await held.enter_async_context(place)
                self._start_thread(name, answer)
                await asyncio.wait({answer}, timeout=SLOW_SECONDS)
                if answer.done() or self._slow >= most_slow:
                    return await answer
            self._slow += 1
            try:
                return await answer
            finally:
                self._slow -= 1
        finally:
            answer.cancel()

    def _start_thread(self, name: str, answer: asyncio.Future[Sequence[str]]) -> None:
        loop = answer.get_loop()

        def settle(addresses: Sequence[str], error: LookupFailed | None) -> None:
            if answer.done():
                return
            if error is None:
                answer.set_result(addresses)
            else:
                answer.set_exception(error)

        def run() -> None:
            addresses: Sequence[str] = ()
            failure: LookupFailed | None = None
            try:
                addresses = self._look_up(name)
            except LookupFailed as error:
                failure = error
            try:
                loop.call_soon_threadsafe(settle, addresses, failure)
            except RuntimeError:
                # The loop is closed by now; no caller waits any more.
                return

        threading.Thread(target=run, name="dns", daemon=True).start()
