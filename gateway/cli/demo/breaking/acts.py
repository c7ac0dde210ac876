"""The faults of the demo's buttons. Each is real: the gateway has no part in it.

`hold` lasts as long as the fault does, and always ends it.
"""

import asyncio
import os
import resource
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.demo.breaking.moved_clock import MovedClock
from gateway.cli.demo.demo_gateway import DemoFault, Gateway
from gateway.cli.demo.receiver import Receiver
from outbox.durations import HOUR

AHEAD = 2 * HOUR
LOCK_SECONDS = 30.0


@dataclass(frozen=True)
class Scene:
    """What the acts break."""

    gateway: Gateway
    receiver: Receiver
    clock: MovedClock
    database: Path


@dataclass(frozen=True)
class Act:
    """One fault: its name, how long it lasts in seconds, and what makes and ends it."""

    name: str
    seconds: float
    hold: Callable[[Scene], AbstractAsyncContextManager[None]]
    possible: bool = True


@asynccontextmanager
async def killed(scene: Scene) -> AsyncIterator[None]:
    """End the gateway with SIGKILL; its supervisor starts another."""
    os.kill(scene.gateway.pid, signal.SIGKILL)
    yield


@asynccontextmanager
async def frozen(scene: Scene) -> AsyncIterator[None]:
    """Let the receiver take requests without an answer, and then cut them."""
    scene.receiver.freeze()
    try:
        yield
    finally:
        scene.receiver.thaw()


@asynccontextmanager
async def locked(scene: Scene) -> AsyncIterator[None]:
    """Hold the write lock of the SQLite file in this process: the gateway can write nothing."""
    connection = await asyncio.to_thread(_lock, scene.database)
    try:
        yield
    finally:
        await asyncio.to_thread(_unlock, connection)


def _lock(file: Path) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            file, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise DemoFault(f"{file.name}: {error}") from error
    try:
        # Only the gateway may checkpoint: SQLite before 3.51.3 can corrupt a WAL otherwise.
        connection.execute("pragma wal_autocheckpoint = 0")
        connection.execute("begin immediate")
    except sqlite3.Error as error:
        connection.close()
        raise DemoFault(f"{file.name}: {error}") from error
    return connection


def _unlock(connection: sqlite3.Connection) -> None:
    connection.execute("rollback")
    connection.close()


@asynccontextmanager
async def full(scene: Scene) -> AsyncIterator[None]:
    """Let each write of the gateway to a file fail, as on a full disk: RLIMIT_FSIZE is 0."""
    pid = scene.gateway.pid
    before, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        # Another gateway may have been started meanwhile; it has no limit.
        if scene.gateway.pid == pid:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (before, hard))


@asynccontextmanager
async def moved(scene: Scene) -> AsyncIterator[None]:
    """Set the wall clock of the gateway and of the receiver two hours ahead, and back."""
    scene.clock.move(AHEAD)
    try:
        yield
    finally:
        scene.clock.move(0)


ACTS = (
    Act("kill", 0, killed),
    Act("freeze", 8, frozen),
    Act("lock", 6, locked),
    # prlimit is a system call of Linux.
    Act("fill", 6, full, hasattr(resource, "prlimit")),
    Act("clock", 6, moved),
)
BY_NAME: Mapping[str, Act] = {act.name: act for act in ACTS}
