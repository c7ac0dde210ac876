"""Passwords: argon2id at OWASP's smallest setting, on two threads of its own.

The threads bound the memory and the processor time that sign-ins can take from the server.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Protocol, TypeVar

import argon2

from gateway.credentials import AuthObserver
from gateway.errors import Refusal
from outbox.clock import Clock
from outbox.ids import Ids

T = TypeVar("T")

THREADS = 2
WAITING = 64
"""Hashes that may wait; at 30 ms each on two threads the last one waits a second."""
HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)
SHORTEST, LONGEST = 8, 128
"""Length of a password in code points; nothing is ever cut off."""


@cache
def _nobodys_hash() -> str:
    """Checked in place of an unknown user's hash, so that both answers take as long."""
    return HASHER.hash("", salt=bytes(16))


class PasswordObserver(AuthObserver, Protocol):
    """Who counts sign-ins and what hashing costs."""

    def password_queue(self, waiting: int) -> None: ...
    def password_hashed(self, seconds: float) -> None: ...


class Passwords:
    """Hashes and checks passwords off the event loop."""

    def __init__(self, *, clock: Clock, ids: Ids, observer: PasswordObserver) -> None:
        self._clock = clock
        self._ids = ids
        self._observer = observer
        self._hasher = HASHER
        self._threads = ThreadPoolExecutor(THREADS, "passwords")
        self._waiting = 0
        self._dummy = _nobodys_hash()

    async def hash(self, password: str) -> str:
        """The string to store. Raises unavailable when too many are waiting."""
        salt = self._ids.token(16)
        return await self._run(lambda: self._hasher.hash(password, salt=salt))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether `password` is the one behind `stored`; None (nobody) takes as long and fails."""

        def check() -> bool:
            try:
                return self._hasher.verify(stored or self._dummy, password)
            except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
                return False

        good = await self._run(check) and stored is not None
        self._observer.authenticated("password", "ok" if good else "bad")
        return good

    def close(self) -> None:
        """Let hashes under way end, and start no other."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= WAITING:
            raise Refusal(
                "unavailable",
                "Too many sign-ins at once; try again in a moment.",
                headers={"Retry-After": "1"},
            )
        self._waiting += 1
        self._observer.password_queue(self._waiting)
        started = self._clock.monotonic()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1
            self._observer.password_queue(self._waiting)
            self._observer.password_hashed(self._clock.monotonic() - started)
