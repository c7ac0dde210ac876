"""`carteiro`, killed before or after the commit of a transaction that changes something.

Its arguments are `before` or `after`, the number of the transaction, and those of the command.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from gateway.__main__ import main
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


if __name__ == "__main__":
    moment, at, *words = sys.argv[1:]
    seen = [0]
    for one in (SqliteExclusive, PostgresExclusive):
        one.transaction = dying(one.transaction, moment, int(at), seen)  # type: ignore[method-assign]
    sys.exit(main(words))
