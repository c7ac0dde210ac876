"""The address that `carteiro serve` listens on, and the signals that stop it."""

import asyncio
import errno
import signal
from collections.abc import Callable

from gateway.server.config import Config
from outbox.errors import CannotStart


async def must_be_free(config: Config) -> None:
    """Bind the address and release it, so that a port in use stops us before any migration."""
    server = config.server
    try:
        bound = await asyncio.get_running_loop().create_server(
            asyncio.Protocol, server.host, server.port, start_serving=False
        )
    except OSError as error:
        raise CannotStart(cannot_listen(config, error)) from None
    bound.close()
    await bound.wait_closed()


def cannot_listen(config: Config, error: OSError) -> str:
    server = config.server
    where = f"{server.host}:{server.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is already in use; choose another port with --port or server.port"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission to listen on {where}; use a port of 1024 or higher"
    return f"cannot listen on {where}: {error.strerror or error}"


def stop_on_signals(again: Callable[[], None], stopping: asyncio.Event) -> None:
    """Set `stopping` on SIGTERM, SIGINT or SIGHUP; call `again` on each further SIGTERM or SIGINT.

    A terminal that closes sends SIGHUP more than once, and a program under nohup ignores it.
    """

    def stop() -> None:
        if stopping.is_set():
            again()
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stopping.set)
