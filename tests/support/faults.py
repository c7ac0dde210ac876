"""The sizes of a fault, and the proof that its bar can fail.

A fault has one test in one file. `make test-all` runs a small cut of it, `make test-faults` and
`make proof` the large one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

ENGINES = pytest.mark.parametrize("engine", ["sqlite", "postgres"])
TRIES = 3
"""A run with a broken rule must show it within this many seeds."""
SMALL_SECONDS, LARGE_SECONDS = 300, 3_600

LARGE = (pytest.mark.proof, pytest.mark.timeout(LARGE_SECONDS))
"""The marks of a large cut."""


def sizes(names: str, *, large: Any, small: Any = None) -> pytest.MarkDecorator:
    """Parametrise a test by its sizes: a value for one name, a tuple for several.

    Without `small` only the large cut exists.
    """
    cuts = {"large": (large, LARGE)}
    if small is not None:
        marks = (pytest.mark.slow, pytest.mark.timeout(SMALL_SECONDS))
        cuts = {"small": (small, marks), **cuts}
    cases = [
        pytest.param(*(value if "," in names else (value,)), id=name, marks=marks)
        for name, (value, marks) in cuts.items()
    ]
    return pytest.mark.parametrize(names, cases)


async def shows(
    run: Callable[[int], Awaitable[Mapping[str, Any]]], seed: int, figure: str = "lost"
) -> bool:
    """Return whether a run with a broken rule shows `figure` with one of a few seeds."""
    for tried in range(TRIES):
        if (await run(seed + tried))[figure]:
            return True
    return False
