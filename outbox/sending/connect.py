"""Open connections that the guard allows, for the requests of all webhooks.

aiohttp's connector keeps the pool, connects and handles TLS; a ClientSession above it would cost
more than the rest of a send.
"""

import asyncio
import copy
import resource
import socket
import ssl
from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Any, cast

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection

from outbox.clock import Clock
from outbox.sending.guard import Guard
from outbox.sending.urls import Refused, Target
from outbox.sending.wire import Progress, Wire, current

CONNECT_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 15.0
FRESH_KEY = 1

SPARE_SHARE = 4
"""Idle connections close when less than a fourth of the process's descriptors may be free.

They close in the event loop's next round; all slots may open a connection in this one.
"""

CONNECT = ClientTimeout(connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)


class Route:
    """The destination of requests to one URL, as a connector needs it, and the head's start."""

    __slots__ = ("_start", "connection_key", "host", "port", "tls", "url")

    proxy = None
    proxy_headers = None
    server_hostname = None
    ssl = True

    def __init__(self, target: Target) -> None:
        self.url = target.url
        self.host = target.host
        self.port = target.port
        self.tls = target.scheme == "https"
        self.connection_key = ConnectionKey(
            target.host, target.port, self.tls, True, None, None, None
        )
        self._start = (
            f"POST {target.url.raw_path_qs} HTTP/1.1\r\n"
            f"Host: {target.url.host_port_subcomponent}\r\n"
            "Content-Length: "
        )

    def is_ssl(self) -> bool:
        return self.tls

    def apart(self) -> "Route":
        """Return the same destination with its own key, so that it takes no pooled connection."""
        route = copy.copy(self)
        route.connection_key = self.connection_key._replace(proxy_headers_hash=FRESH_KEY)
        return route

    def head(self, headers: Sequence[tuple[str, str]], length: int) -> bytes:
        """Build the head of the request. Raise ValueError for a header with a line break."""
        lines = "\r\n".join([f"{name}: {value}" for name, value in headers])
        breaks = len(headers) - 1
        if lines.count("\n") != breaks or lines.count("\r") != breaks or "\0" in lines:
            raise ValueError("a header contains a line break")
        return f"{self._start}{length}\r\n{lines}\r\n\r\n".encode("ascii")


class Dialler(AbstractResolver):
    """Opens connections that the guard allows, and notes each step in the attempt's progress."""

    def __init__(
        self, guard: Guard, clock: Clock, tls: ssl.SSLContext | None, scarce_from: float | None
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._scarce = few_left_from() if scarce_from is None else scarce_from
        self._connector = TCPConnector(
            limit=0,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            # The guard caches names itself, and checks addresses for each connection.
            use_dns_cache=False,
            resolver=self,
            socket_factory=self._open_socket,
            ssl=True if tls is None else tls,
        )
        # aiohttp has no parameter for this setting.
        made_of = cast("partial[ResponseHandler]", partial(Wire, clock=clock))
        self._connector._factory = partial(made_of, loop=asyncio.get_running_loop())

    async def connect(self, route: Route, progress: Progress) -> Connection:
        """Return a connection, pooled or new, with its Wire in `progress`."""
        token = current.set(progress)
        try:
            connection = await self._connector.connect(cast(ClientRequest, route), [], CONNECT)
        finally:
            current.reset(token)
        wire = cast(Wire, connection.protocol)
        if progress.connected is not None and progress.tls:
            progress.secured = self._clock.monotonic()
        progress.wire = wire
        progress.stage = "answer"
        return connection

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        progress = current.get()
        progress.stage = "dns"
        began = self._clock.monotonic()
        try:
            addresses = await self._guard.resolve(host, port, family)
        except Refused as refused:
            progress.refused = refused
            raise
        finally:
            progress.resolved_in = self._clock.monotonic() - began
        progress.stage = "connect"
        return addresses

    def _open_socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        progress = current.get()
        if progress.dialled is None:
            progress.dialled = self._clock.monotonic()
        try:
            sock = self._guard.open_socket(address_info)
        except Refused as refused:
            progress.refused = refused
            raise
        # The kernel gives the lowest free number, so by now all below it are taken.
        if sock.fileno() >= self._scarce:
            self._close_idle()
        return sock

    def _close_idle(self) -> None:
        """Close the pooled connections, whose descriptors others need more."""
        for pooled in self._connector._conns.values():
            for wire, _ in pooled:
                wire.abort()
        self._connector._conns.clear()

    async def close(self) -> None:
        """Close the pool. aiohttp also calls this to close its resolver."""
        if not self._connector.closed:
            await self._connector.close()


def few_left_from() -> float:
    """Return the number of a descriptor from which on few are left."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if most == resource.RLIM_INFINITY else most - most // SPARE_SHARE
