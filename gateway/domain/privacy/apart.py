"""Searches texts on a thread that gives way to requests."""

import asyncio
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
GIVES_WAY = 0.0005
"""Seconds after which a thread that searches lets another one run, if that wants to.

The interpreter's own time is ten times as long, and a request waits for it at each of its steps.
"""

_usual: list[float] = []
"""What the interpreter had before the searches that run, once for each."""


async def apart(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do this work on a thread while others run."""
    _usual.append(_usual[0] if _usual else sys.getswitchinterval())
    sys.setswitchinterval(min(_usual[0], GIVES_WAY))
    try:
        return await asyncio.to_thread(work, *args, **kwargs)
    finally:
        usual = _usual.pop()
        if not _usual:
            sys.setswitchinterval(usual)
