"""`carteiro move` that ends before or after the commit of a transaction that changes something.

As a program it is killed there. Its arguments are `before` or `after`, the number of the
transaction, and those of the command. In place of the number there may be the name of a unit of a
live move, such as `_rest`, with the number of its call: `_apply.2`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

import pytest

from gateway.__main__ import main
from outbox.database.postgres.exclusive import PostgresExclusive
from outbox.database.postgres.move_connection import MoveConnection
from outbox.database.sqlite.exclusive import SqliteExclusive
from tests.support.moved import PATIENT, Pair, run
from tests.support.process import environment

Transaction = Callable[[Any], AbstractAsyncContextManager[Any]]
End = Callable[[], None]


class Cut(BaseException):
    """The end of a command, past everything that handles its errors."""


def cut(pair: Pair, when: str, at: str) -> None:
    """Run the command until that moment; what it has not committed is rolled back."""

    def end() -> None:
        raise Cut

    with ending(when, at, end), pytest.raises(Cut):
        run(pair)


def killed(pair: Pair, when: str, at: str) -> None:
    """Run the command as a process until it is killed at that moment."""
    folder, words = pair.keys.parent, pair.words()
    done = subprocess.run(
        [sys.executable, "-m", "tests.gateway.cli.moving.dying_move", when, at, *words],
        cwd=folder, env=environment(folder, **pair.settings), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == -9, (when, at, done.stdout, done.stderr)


@contextmanager
def ending(when: str, at: str, end: End) -> Iterator[None]:
    """Call `end` at that moment of a move of this process."""
    with pytest.MonkeyPatch.context() as patch:
        if at.isdigit():
            seen = [0]
            for one in (SqliteExclusive, PostgresExclusive):
                patch.setattr(
                    one, "transaction", _ending(one.transaction, when, int(at), seen, end)
                )
        else:
            patch.setattr(MoveConnection, "step", _ending_step(MoveConnection.step, when, at, end))
        yield


def _ending(transaction: Transaction, when: str, number: int, seen: list[int], end: End) -> Any:
    @asynccontextmanager
    async def begun(self: Any) -> AsyncIterator[Any]:
        async with transaction(self) as tx:
            yield tx
            seen[0] += 1
            if when == "before" and seen[0] == number:
                end()
        if when == "after" and seen[0] == number:
            end()

    return begun


def _ending_step(step: Any, when: str, at: str, end: End) -> Any:
    calls: Counter[str] = Counter()

    async def begun(self: Any, unit: Any, *args: Any) -> Any:
        async def counted(tx: Any, *args: Any) -> Any:
            done = await unit(tx, *args)
            # A unit that has to come back says False.
            calls[unit.__name__] += done is not False
            if when == "before" and at == f"{unit.__name__}.{calls[unit.__name__]}":
                end()
            return done

        done = await step(self, counted, *args)
        if when == "after" and at == f"{unit.__name__}.{calls[unit.__name__]}":
            end()
        return done

    return begun


if __name__ == "__main__":
    moment, place, *arguments = sys.argv[1:]
    with ending(moment, place, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        sys.exit(main(arguments, PATIENT))
