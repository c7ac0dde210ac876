"""Both engines, and the proof that a bar can fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from tests.support.ledger import Verdict

ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
TRIES = 3
"""A run with a broken rule must show it within this many seeds."""


async def shows(
    run: Callable[[int], Awaitable[Mapping[str, Any] | Verdict]], seed: int, figure: str = "lost"
) -> bool:
    """Return whether a run with a broken rule shows `figure` with one of a few seeds."""
    for tried in range(TRIES):
        found = await run(seed + tried)
        if (found.told() if isinstance(found, Verdict) else found)[figure]:
            return True
    return False
