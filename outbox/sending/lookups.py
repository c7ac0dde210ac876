"""Host names to addresses: one look-up per host at a time, remembered, never in the loop's way."""

import asyncio
import socket
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outbox.clock import Clock

LookUp = Callable[[str], Sequence[str]]
"""Takes a host name, blocks, gives its addresses or raises LookupFailed."""

DEADLINE_SECONDS = 5.0
MOST_THREADS = 32
MOST_SUSPECTS = 16
"""Of those, for hosts whose last look-up failed: dead names leave threads to the living."""
SLOW_SECONDS = 1.0
MOST_SLOW = 256
"""Look-ups that have lasted longer than that no longer count among the threads, up to so many."""
FRESH_SECONDS = 30.0
STALE_SECONDS = 600.0
"""How long an old answer still serves while the name servers give none."""
FAILED_SECONDS = 30.0
REFRESH_SECONDS = 0.5
"""How long a new answer is waited for while there is an old one."""
MOST_HOSTS = 10_000
NEVER = float("-inf")
TOO_SLOW = "the name servers did not answer in time"
FAILED = "the look-up failed"
NO_HOST = "no such host"


class LookupFailed(OSError):
    """A host name that could not be resolved; the text says why in a few words."""


def ask_system(host: str) -> Sequence[str]:
    """The system's answers for `host`, in its order of preference. Raises LookupFailed."""
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
        return "the name servers did not answer"
    return FAILED


@dataclass(slots=True)
class _Host:
    """What is known of one name."""

    addresses: Sequence[str] = ()
    answered_at: float = NEVER
    error: str | None = None
    failed_at: float = NEVER
    running: asyncio.Future[None] | None = field(default=None, repr=False)


class Lookups:
    """The look-ups of one process, on threads of their own.

    Daemon threads, since getaddrinfo cannot be interrupted and must not hold up the exit.
    """

    def __init__(self, clock: Clock, look_up: LookUp = ask_system) -> None:
        self._clock = clock
        self._look_up = look_up
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._threads = asyncio.Semaphore(MOST_THREADS)
        self._suspects = asyncio.Semaphore(MOST_SUSPECTS)
        self._slow = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def addresses(self, name: str) -> Sequence[str]:
        """All answers for `name`. Raises LookupFailed after at most 5 s."""
        host = self._host(name)
        now = self._clock.monotonic()
        if now - host.answered_at < FRESH_SECONDS:
            return host.addresses
        if host.addresses and now - host.answered_at < STALE_SECONDS:
            # The old answer serves when a new one takes long.
            if now - host.failed_at >= FAILED_SECONDS:
                await asyncio.wait({self._ask(name, host)}, timeout=REFRESH_SECONDS)
            return host.addresses
        if now - host.failed_at >= FAILED_SECONDS:
            await self._refresh(name, host)
            now = self._clock.monotonic()
        if now - host.answered_at < STALE_SECONDS:
            return host.addresses
        raise LookupFailed(host.error or FAILED)

    async def close(self) -> None:
        """Forget the look-ups that run; their threads end by themselves."""
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
                # Shielded: other senders wait for the same answer.
                await asyncio.shield(running)
        except TimeoutError:
            host.failed_at = self._clock.monotonic()
            host.error = TOO_SLOW

    def _ask(self, name: str, host: _Host) -> asyncio.Future[None]:
        """The look-up of `host` that runs, begun now if there was none."""
        if host.running is None:
            host.running = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(self._run(name, host))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return host.running

    async def _run(self, name: str, host: _Host) -> None:
        try:
            if host.error is None:
                addresses = await self._answer(name)
            else:
                async with self._suspects:
                    addresses = await self._answer(name)
            if not addresses:
                raise LookupFailed(NO_HOST)
        except LookupFailed as error:
            host.failed_at = self._clock.monotonic()
            host.error = str(error)
        except RuntimeError:
            # The system gave no thread.
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

    async def _answer(self, name: str) -> Sequence[str]:
        """What the name servers say; one that takes long makes room for the others."""
        await self._threads.acquire()
        holds = True
        look_up = asyncio.create_task(self._in_thread(name))
        try:
            done, _ = await asyncio.wait({look_up}, timeout=SLOW_SECONDS)
            if not done and self._slow < MOST_SLOW:
                self._slow += 1
                holds = False
                self._threads.release()
            return await look_up
        finally:
            look_up.cancel()
            if holds:
                self._threads.release()
            else:
                self._slow -= 1

    async def _in_thread(self, name: str) -> Sequence[str]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

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
                # The loop has closed meanwhile; nobody waits any more.
                return

        threading.Thread(target=run, name="dns", daemon=True).start()
        return await answer
