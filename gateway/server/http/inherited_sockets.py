"""Accepts connections from sockets on which several processes listen.

They share one queue of connections: those that a process has not accepted when it dies or hangs go
to the others. The process that delivers leaves connections to the others, so that writes
do not take the time of their deliveries.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence

from gateway.server.telemetry import logs

PAUSE_SECONDS = 0.5
"""After an accept that failed, such as for want of descriptors."""
GIVE_WAY_SECONDS = 0.1
"""Connections that no other process takes in this time are accepted after all."""


class SharedSite:
    """Listens on `sockets`, which it owns, from `start` to `stop`.

    While `gives_way` says so, it first leaves connections to the other processes.
    """

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        sockets: Sequence[socket.socket],
        backlog: int,
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self._protocol = protocol
        self._sockets = tuple(sockets)
        self._backlog = backlog
        self._gives_way = gives_way
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
        if self._gives_way():
            self._pause(listener, GIVE_WAY_SECONDS, self._accept_rest)
            return
        # One at a time: a process that is busy leaves the next to one that is not.
        self._accept_one(listener)

    def _accept_rest(self, listener: socket.socket) -> None:
        """Accept all that nobody else has taken."""
        self._resume(listener)
        while self._accept_one(listener):
            pass

    def _accept_one(self, listener: socket.socket) -> bool:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            logs.logger().error("accept_failed", error=repr(error))
            self._pause(listener, PAUSE_SECONDS, self._resume)
            return False
        connection.setblocking(False)
        task = asyncio.create_task(self._connect(connection), name="connection")
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return True

    def _pause(
        self, listener: socket.socket, seconds: float, then: Callable[[socket.socket], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        self._pauses[listener] = loop.call_later(seconds, then, listener)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(self._protocol, connection)
        except OSError:
            # The client has gone.
            connection.close()
