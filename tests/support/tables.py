"""Tables of cases that share one world."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import wraps
from typing import Any

Test = Callable[..., Awaitable[None]]


def in_turn(names: str | Sequence[str], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Return a decorator like `parametrize`, but a test is one for all rows of the table.

    For rows that leave the world as it was: to make a world takes longer than to try a row in it.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [tuple(row) if len(keys) > 1 else (row,) for row in rows]

    def decorate(test: Test) -> Test:
        @wraps(test)
        async def run(**fixtures: Any) -> None:
            for row in table:
                try:
                    await test(**fixtures, **dict(zip(keys, row, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the row {row}")
                    raise

        whole = inspect.signature(test)
        asked = [each for name, each in whole.parameters.items() if name not in keys]
        run.__signature__ = whole.replace(parameters=asked)  # type: ignore[attr-defined]
        return run

    return decorate
