"""A check of a password that waits, so that something else happens meanwhile."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import argon2

from tests.support.waiting import until


class Held(argon2.PasswordHasher):
    """A hasher whose next check, once it `holds`, has its result and waits with it for `go`."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.holds = False
        self.reached = threading.Event()
        self.go = threading.Event()

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:  # noqa: A002 - its name in the library
        try:
            return super().verify(hash, password)
        finally:
            if self.holds:
                self.holds = False
                self.reached.set()
                self.go.wait()

    async def during(
        self, act: Callable[[], Awaitable[Any]], other: Callable[[], Awaitable[object]]
    ) -> Any:
        """Let `other` happen while `act` checks a password; return what became of `act`."""
        self.holds = True
        self.reached.clear()
        self.go.clear()
        task = asyncio.ensure_future(act())
        try:
            await until(self.reached.is_set)
            await other()
        finally:
            self.go.set()
        return await task
