"""Accepts connections from sockets on which several processes listen.

They share one queue of connections: those that a process has not accepted when it dies or stands
still go to the others.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence

from gateway.server.telemetry import logs

PAUSE_SECONDS = 0.5
"""After an accept that failed, such as for want of descriptors."""


class SharedSite:
    """Listens on `sockets`, which it owns, from `start` to `stop`."""

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        sockets: Sequence[socket.socket],
        backlog: int,
    ) -> None:
        self._protocol = protocol
        self._sockets = tuple(sockets)
        self._backlog = backlog
        self._connecting: set[asyncio.Task[object]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}

    @property
    def port(self) -> int:
        """The port of the first socket."""
        return int(self._sockets[0].getsockname()[1])

    async def start(self) -> None:
        """Listen and accept. Raise OSError."""
        for listener in self._sockets:
            listener.setblocking(False)
            listener.listen(self._backlog)
            self._resume(listener)

    async def stop(self) -> None:
        """Accept no more; the queue stays for the other processes."""
        for listener in self._sockets:
            if (pause := self._pauses.pop(listener, None)) is not None:
                pause.cancel()
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _resume(self, listener: socket.socket) -> None:
        self._pauses.pop(listener, None)
        asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        # One at a time: a process that is busy leaves the next to one that is not.
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            logs.logger().error("accept_failed", error=repr(error))
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            self._pauses[listener] = loop.call_later(PAUSE_SECONDS, self._resume, listener)
            return
        connection.setblocking(False)
        task = asyncio.create_task(self._connect(connection), name="connection")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        except OSError:
            # The client has gone.
            connection.close()
