"""Hashes and verifies passwords with argon2id at OWASP's minimum setting, and checks new ones.

Two threads limit the memory and processor time of sign-ins. Clients take turns, so that no client
fills the queue for others.
"""

import asyncio
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

import argon2

from gateway.domain.accounts.opaque_strings import forbidden, prepared
from gateway.records.errors import Refusal
from gateway.records.values.formats import Wrong
from outbox.clock import Clock
from outbox.database.fair_limit import Crowded, FairSemaphore
from outbox.ids import Ids

T = TypeVar("T")

THREADS = 2
WAITING = 16
"""Most waiting hashes of one client, at 30 ms each."""
WAITING_MOST = 512
"""Most waiting hashes of all clients; above it the client with most waiting hashes loses one."""
HASHER = argon2.PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1)


@cache
def hash_of_nobody() -> str:
    """Return the hash verified for unknown users, so that their response takes as long."""
    return HASHER.hash("", salt=bytes(16))


class PasswordObserver(Protocol):
    """A recorder of the cost of hashing."""

    def password_queue(self, waiting: int) -> None: ...
    def password_hashed(self, seconds: float) -> None: ...


class Passwords:
    """The hasher of passwords, off the event loop; clients take turns for its `places`."""

    def __init__(
        self,
        *,
        clock: Clock,
        ids: Ids,
        observer: PasswordObserver,
        places: FairSemaphore | None = None,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._observer = observer
        self._hasher = HASHER
        self._threads = ThreadPoolExecutor(THREADS, "passwords")
        # One client leaves a thread to others.
        self._places = places or FairSemaphore(
            THREADS, each=THREADS - 1, waiting=WAITING, most=WAITING_MOST
        )
        self._under_way = 0
        self._dummy = hash_of_nobody()

    async def hash(self, password: str, holder: str = "") -> str:
        """Return the hash to store. Raises unavailable when too many are waiting."""
        salt, text = self._ids.token(16), prepared(password)
        return await self._run(
            holder, lambda: self._hasher.hash(password if text is None else text, salt=salt)
        )

    async def verify(self, stored: str | None, password: str, holder: str = "") -> bool:
        """Return whether `password` matches `stored`. See `check`."""
        return (await self.check(stored, password, holder))[0]

    async def check(
        self, stored: str | None, password: str, holder: str = ""
    ) -> tuple[bool, str | None]:
        """Return whether `password` matches `stored`, and the hash to store in its place if any.

        Earlier releases hashed a password as it was typed; such a hash is to be replaced. None (no
        user) takes as long and fails. `holder` is the client that takes turns. Raises unavailable
        when too many are waiting.
        """
        text, salt = prepared(password), self._ids.token(16)

        def matches(sent: str) -> bool:
            try:
                return self._hasher.verify(stored or self._dummy, sent)
            except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
                return False

        def work() -> tuple[bool, str | None]:
            if text is not None and matches(text):
                return True, None
            if text == password or not matches(password):
                return False, None
            return True, None if text is None else self._hasher.hash(text, salt=salt)

        right, better = await self._run(holder, work)
        return (right, better) if stored is not None else (False, None)

    def close(self) -> None:
        """Wait for running hashes, and start no more."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _run(self, holder: str, work: Callable[[], T]) -> T:
        started = self._clock.monotonic()
        self._count(1)
        try:
            async with self._places.place(holder):
                result = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except Crowded:
            raise Refusal(
                "unavailable",
                "Too many sign-ins at once; try again later.",
                facts={"retry_after": 1},
            ) from None
        finally:
            self._count(-1)
        self._observer.password_hashed(self._clock.monotonic() - started)
        return result

    def _count(self, more: int) -> None:
        self._under_way += more
        self._observer.password_queue(self._under_way)


SHORTEST, LONGEST = 8, 128
"""Length of a password in code points."""
COMMON_PASSWORDS = Path(__file__).parent / "vendor" / "common_passwords.txt"


def weakness_of(password: str, email: str) -> Wrong | None:
    """Return why `password` is not allowed, or None when it is."""
    if not SHORTEST <= len(password) <= LONGEST:
        text = "A password must have {least} to {most} characters."
        return Wrong("password_length", text, least=SHORTEST, most=LONGEST)
    normal = prepared(password)
    if normal is None:
        text = "A password must not contain this character: {character}."
        return Wrong("password_character", text, character=forbidden(password))
    folded = _folded(normal)
    if folded in _common() or len(set(folded)) == 1:
        text = "This password is too common; use a few random words instead."
        return Wrong("password_common", text)
    address = _folded(email)
    if folded in (address, address.partition("@")[0]):
        text = "This password is your e-mail address; use a few random words instead."
        return Wrong("password_email", text)
    return None


def fault_of(password: str, email: str) -> str | None:
    """Return a sentence that says why `password` is not allowed, or None when it is."""
    weakness = weakness_of(password, email)
    return None if weakness is None else weakness.message


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


@cache
def _common() -> frozenset[str]:
    return frozenset(COMMON_PASSWORDS.read_text("utf-8").split())
