"""`carteiro`, killed before or after the commit of a transaction that changes something.

Its arguments are `before` or `after`, the number of the transaction, and those of the command. In
place of the number there may be the name of a unit of a live move, such as `_rest`, with the number
of its call: `_apply.2`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from gateway.__main__ import main
from outbox.database.postgres.beside import Beside
from outbox.database.postgres.exclusive import PostgresExclusive
from outbox.database.sqlite.exclusive import SqliteExclusive

Transaction = Callable[[Any], AbstractAsyncContextManager[Any]]


def dying(transaction: Transaction, when: str, number: int, counted: list[int]) -> Any:
    """Return a transaction that kills this process at the given one."""

    @asynccontextmanager
    async def run(self: Any) -> AsyncIterator[Any]:
        async with transaction(self) as tx:
            yield tx
            counted[0] += 1
            if when == "before" and counted[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
        if when == "after" and counted[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return run


def dying_step(step: Any, when: str, name: str, number: int) -> Any:
    """Return a step of a live move that kills this process at the given call of a unit."""
    calls: Counter[str] = Counter()

    async def run(self: Any, unit: Any, *args: Any) -> Any:
        async def counted(tx: Any, *args: Any) -> Any:
            done = await unit(tx, *args)
            # A unit that has to come back says False.
            calls[unit.__name__] += done is not False
            if when == "before" and unit.__name__ == name and calls[name] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        done = await step(self, counted, *args)
        if when == "after" and unit.__name__ == name and calls[name] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    return run


if __name__ == "__main__":
    moment, at, *words = sys.argv[1:]
    if at.isdigit():
        seen = [0]
        for one in (SqliteExclusive, PostgresExclusive):
            one.transaction = dying(one.transaction, moment, int(at), seen)  # type: ignore[method-assign]
    else:
        unit_name, _, call = at.partition(".")
        Beside.step = dying_step(Beside.step, moment, unit_name, int(call))  # type: ignore[method-assign]
    sys.exit(main(words))
