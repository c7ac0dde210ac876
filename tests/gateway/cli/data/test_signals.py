"""SIGTERM ends a command before it has changed anything, and never calls undone what is done."""

from __future__ import annotations

import asyncio
import signal
from argparse import Namespace
from collections.abc import Callable

import pytest

from gateway.cli.data.data_commands import changed, ended_by_signal
from gateway.server.config import Config
from outbox.errors import CannotStart


async def test_a_signal_before_the_change_ends_the_command() -> None:
    @ended_by_signal
    async def command(config: Config, arguments: Namespace, say: Callable[[str], None]) -> None:
        signal.raise_signal(signal.SIGTERM)
        await asyncio.Event().wait()

    with pytest.raises(CannotStart, match="nothing is changed"):
        await command(Config(), Namespace(), print)


async def test_a_signal_that_waits_for_its_turn_after_the_change_is_ignored() -> None:
    said: list[str] = []

    @ended_by_signal
    async def command(config: Config, arguments: Namespace, say: Callable[[str], None]) -> None:
        signal.raise_signal(signal.SIGTERM)
        # The loop reads the signal after the first step, and calls its handler after the second.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        changed()
        await asyncio.sleep(0)
        say("done")

    await command(Config(), Namespace(), said.append)
    assert said == ["done"]


async def test_another_interruption_after_the_change_is_not_the_signal() -> None:
    @ended_by_signal
    async def command(config: Config, arguments: Namespace, say: Callable[[str], None]) -> None:
        task = asyncio.current_task()
        assert task is not None
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(asyncio.CancelledError):  # as a COMMIT that goes on all the same
            await asyncio.Event().wait()
        changed()
        task.cancel()
        await asyncio.sleep(0)

    running = asyncio.ensure_future(command(Config(), Namespace(), print))
    with pytest.raises(asyncio.CancelledError):
        await running
    # Else the runner of the program would not know it as Ctrl-C.
    assert isinstance(running, asyncio.Task)
    assert running.cancelling() == 1
