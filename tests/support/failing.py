"""Lets one call of a database fail."""

from __future__ import annotations

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
