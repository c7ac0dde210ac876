"""A store with faults: real SQLite and real units, on the loop's thread, as a seed decides.

A transaction may take time, fail before it, or commit and report a failure. A store that is cut off
answers nothing more, as a process that is killed gets no answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Concatenate, Literal

from outbox.database.leadership import Alone, Leadership, Pace
from outbox.database.pacing import Meter
from outbox.database.sqlite.file import File
from outbox.database.sqlite.unit_thread import Job, SqliteTx, fault_of
from outbox.database.transaction import (
    PACE,
    Batch,
    Idle,
    Name,
    P,
    Purpose,
    T,
    Tx,
    Unsubscribe,
    Wake,
)
from outbox.errors import DatabaseUnavailable, OutcomeUnknown
from outbox.ids import Ids
from outbox.observer import Observer
from tests.support.simulated.loop import VirtualTime

SLOWEST = 0.02
"""Seconds that a transaction may take before and after its COMMIT."""


class Store:
    """`Database` of one simulated process on one SQLite file."""

    engine: Literal["sqlite", "postgres"] = "sqlite"
    shared = False
    one_writer = True
    batch = Batch(128, 512 * 1024)

    def __init__(self, path: Path, clock: VirtualTime, ids: Ids, dice: Random) -> None:
        self.clock = clock
        self.ids = ids
        self.observer = Observer()
        self.meter = Meter(clock)
        self.faults = 0.0
        """The share of transactions that fail: half of them before COMMIT, half of them after."""
        self._dice = dice
        file = File(path, clock, False, "normal")
        file.prepare()
        self._connection = file.connect()
        self._listeners: list[Callable[[], None]] = []
        self._watchers: list[Callable[[Collection[str]], None]] = []
        self._cut = False

    def cut(self) -> None:
        """Answer nothing from now on."""
        self._cut = True

    def apart(self, purpose: Purpose) -> Store:
        return self

    def listen(
        self, callback: Wake, node: Name | None = None, idle: Idle | None = None
    ) -> Unsubscribe:
        self._listeners.append(callback)
        return partial(self._listeners.remove, callback)

    def announce(self) -> None:
        """Do nothing: there is no other node."""

    def on_change(self, callback: Callable[[Collection[str]], None]) -> Unsubscribe:
        self._watchers.append(callback)
        return partial(self._watchers.remove, callback)

    def on_move(self, callback: Callable[[], None]) -> Unsubscribe:
        return lambda: None

    def leadership(self, pace: Pace = PACE) -> Leadership:
        return Alone()

    def census(self) -> Mapping[str, int]:
        return {}

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self._time()
        result: T = self._run(unit, args, kwargs).result
        return result

    async def scan(
        self,
        owner: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return await self.read(unit, *args, **kwargs)

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        fails = self._dice.random() < self.faults
        early = self._dice.random() < 0.5
        await self._time()
        if fails and early:
            raise DatabaseUnavailable("busy", "simulated: the database is busy")
        job = self._run(unit, args, kwargs)
        await self._time()
        if fails:
            raise OutcomeUnknown("connection", "simulated: no answer to COMMIT")
        if job.changed:
            for watcher in self._watchers:
                watcher(job.changed)
        if job.wake:
            for callback in self._listeners:
                callback()
        result: T = job.result
        return result

    async def close(self) -> None:
        self._connection.close()

    def end(self) -> None:
        """Close the file at the end of a process."""
        self._connection.close()

    async def _time(self) -> None:
        """Let a random time pass; for ever in a process that is killed."""
        await asyncio.sleep(self._dice.random() * SLOWEST)
        if self._cut:
            await asyncio.get_running_loop().create_future()

    def _run(
        self, unit: Callable[..., Awaitable[Any]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Job:
        job = Job(unit, args, kwargs, asyncio.get_running_loop().create_future(), 0.0)
        self._connection.execute("begin immediate")
        try:
            job.step(SqliteTx(self._connection, self.ids, self.clock.wall()))
            self._connection.execute("commit")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            raise fault_of(error) from error
        return job
