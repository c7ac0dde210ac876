"""Lets one call of a database fail, or something else happen before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from outbox.database.transaction import Database


def failing(
    monkeypatch: pytest.MonkeyPatch,
    db: Database,
    how: Literal["read", "write"],
    unit: Any,
    error: Exception,
) -> None:
    """Let the next call of `how` with `unit` raise `error`."""
    real = getattr(type(db), how)
    left = [error]

    async def called(self: Any, called_unit: Any, *args: Any, **kwargs: Any) -> Any:
        if called_unit is not unit or not left:
            return await real(self, called_unit, *args, **kwargs)
        raise left.pop()

    monkeypatch.setattr(type(db), how, called)


def preceded(
    monkeypatch: pytest.MonkeyPatch,
    db: Database,
    unit: Any,
    other: Callable[[], Awaitable[object]],
) -> None:
    """Let `other` end before the next write of `unit` begins, as if it were a little late."""
    real = type(db).write
    left = [other]

    async def called(self: Any, called_unit: Any, *args: Any, **kwargs: Any) -> Any:
        if called_unit is unit and left:
            await left.pop()()
        return await real(self, called_unit, *args, **kwargs)

    monkeypatch.setattr(type(db), "write", called)
