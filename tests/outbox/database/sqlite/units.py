"""Units for the tests of the SQLite driver, and a clock that stands still."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable

from outbox.database.transaction import Insert, Tx, brief
from tests.support.clocks import Stopped

NOTES = Insert("notes", ("name", "text"))
LOOP = threading.main_thread().name
THREAD = "sqlite"


async def long_note(tx: Tx, name: str, size: int = 1) -> str:
    await tx.run("insert into notes (name, text) values ($1, $2)", name, b"x" * size)
    return threading.current_thread().name


@brief
async def note(tx: Tx, name: str, size: int = 1) -> str:
    return await long_note(tx, name, size)


@brief
async def later(tx: Tx, name: str, text: bytes | None = b"x") -> str:
    tx.later(NOTES, (name, text))
    return threading.current_thread().name


def slow(clock: Stopped, seconds: float) -> Callable[[Tx], Awaitable[str]]:
    """Return a unit whose three statements begin so many seconds after each other."""

    @brief
    async def unit(tx: Tx) -> str:
        for _ in range(3):
            clock.now += seconds
            await tx.all("select * from notes")
        return threading.current_thread().name

    return unit


async def noted(tx: Tx) -> list[str]:
    return [row["name"] for row in await tx.all("select name from notes order by n")]


async def watch(tx: Tx, ran: Callable[[str], None]) -> None:
    """Call `ran` with each statement of the writer's connection."""
    tx._connection.set_trace_callback(ran)  # type: ignore[attr-defined]
