"""Shared fixtures of the engine's tests."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

ON_BOTH_LOOPS = ("test_connections", "test_send", "test_wire", "test_receivers", "test_deadlines")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]] | None:
    """Sending depends on the event loop: run it on asyncio's loop and on uvloop."""
    loops: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.stem.startswith(ON_BOTH_LOOPS):
        loops["uvloop"] = uvloop.new_event_loop
    return loops
