"""Let SIGTERM end a command in order, as Ctrl-C does: what it had begun is removed."""

from __future__ import annotations

import asyncio
import signal
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import wraps

from gateway.server.config import Config
from outbox.errors import CannotStart

Command = Callable[[Config, Namespace, Callable[[str], None]], Awaitable[None]]


def ended_by_signal(command: Command) -> Command:
    """Return `command` with SIGTERM as a refusal of one line."""

    @wraps(command)
    async def run(config: Config, given: Namespace, say: Callable[[str], None]) -> None:
        task = asyncio.current_task()
        assert task is not None
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            task.cancel()

        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, end)
        try:
            await command(config, given, say)
        except asyncio.CancelledError:
            if not ended:
                raise
            raise CannotStart("ended by SIGTERM; nothing is changed") from None
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    return run
