"""Open connections that the guard allows, for the requests of all webhooks.

aiohttp's connector keeps the pool, connects and handles TLS; a ClientSession above it would cost
more than the rest of a send.
"""

import asyncio
import copy
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import inf
from typing import Any, cast

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorSSLError,
    ClientRequest,
    ClientTimeout,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from yarl import URL

from outbox.clock import Clock
from outbox.sending.client_certificates import Contexts, Trust
from outbox.sending.guard import Guard
from outbox.sending.lookups import LookupFailed
from outbox.sending.proxies import ProxyFailed, open_tunnel, place_of
from outbox.sending.request import DIRECT, Via
from outbox.sending.urls import Refused, Target
from outbox.sending.wire import Progress, Wire, current

CONNECT_SECONDS = 5.0
KEEP_ALIVE_SECONDS = 15.0
FRESH_KEY = 1

SPARE_SHARE = 4
"""Idle connections close when less than a fourth of the process's descriptors may be free.

They close in the event loop's next round; all slots may open a connection in this one.
"""

Direct = Callable[["Route"], Awaitable[ResponseHandler]]
"""Creates a connection as aiohttp does."""
CONNECT = ClientTimeout(connect=CONNECT_SECONDS, sock_connect=CONNECT_SECONDS)


class Route:
    """The destination of requests to one URL, as a connector needs it, and the head's start."""

    __slots__ = ("_start", "connection_key", "host", "literal", "port", "ssl", "tls", "url", "via")

    proxy = None
    proxy_headers = None
    server_hostname = None

    def __init__(self, target: Target, via: Via = DIRECT) -> None:
        self.ssl: bool | ssl.SSLContext = True
        self.via = via
        self.url = target.url
        self.host = target.host
        self.port = target.port
        self.literal = target.literal
        self.tls = target.scheme == "https"
        self.connection_key = ConnectionKey(
            target.host, target.port, self.tls, True,
            # Connections with another certificate or proxy are never used: none is shared.
            None if via is DIRECT else cast(URL, via), None, None,
        )  # fmt: skip
        self._start = (
            f"POST {target.path} HTTP/1.1\r\n"
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

    def with_context(self, context: ssl.SSLContext) -> "Route":
        """Return the same destination with this TLS context."""
        route = copy.copy(self)
        route.ssl = context
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
        self, guard: Guard, clock: Clock, trust: Trust | None, scarce_from: float | None
    ) -> None:
        self._guard = guard
        self._clock = clock
        self._scarce = few_left_from() if scarce_from is None else scarce_from
        self._contexts = Contexts(trust or ssl.create_default_context)
        self._connector = _Connector(
            self._create,
            limit=0,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            # The guard caches names itself, and checks addresses for each connection.
            use_dns_cache=False,
            resolver=self,
            socket_factory=self._open_socket,
            ssl=True if trust is None else trust(),
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

    async def _create(self, route: Route, direct: Direct) -> ResponseHandler:
        """Create a connection: `direct`, or with a client certificate, or through a proxy."""
        if route.via is DIRECT:
            return await direct(route)
        if route.via.certificate is not None and route.tls:
            route = route.with_context(await self._contexts.of(route.via.certificate))
        return await (direct(route) if route.via.proxy is None else self._through_proxy(route))

    async def _through_proxy(self, route: Route) -> ResponseHandler:
        proxy = self._guard.rules.proxies[cast(str, route.via.proxy)]
        progress = current.get()
        try:
            addresses = await self._allowed(route)
        except LookupFailed as error:
            raise ClientConnectorDNSError(route.connection_key, error) from error
        progress.stage, progress.proxy = "proxy", proxy.name
        progress.dialled = self._clock.monotonic()
        try:
            own = await self._guard.addresses(proxy.host)
        except LookupFailed:
            raise ProxyFailed(f"the proxy {proxy.name} cannot be found") from None
        for place, address in enumerate(addresses, start=1):
            try:
                sock = await open_tunnel(proxy, own, address, route.port)
            except ProxyFailed:
                if place == len(addresses):
                    raise
            else:
                break
        return await self._secure(route, sock, f"{place_of(address, route.port)} via {proxy.name}")

    async def _allowed(self, route: Route) -> Sequence[str]:
        """Return the addresses of a receiver; the guard never sees those in the proxy's socket."""
        if not route.literal:
            return [one["host"] for one in await self.resolve(route.host, route.port)]
        try:
            self._guard.must_allow(route.host, route.port)
        except Refused as refused:
            current.get().refused = refused
            raise
        return [route.host]

    async def _secure(self, route: Route, sock: socket.socket, address: str) -> ResponseHandler:
        """Return the connection in a tunnel, after the TLS handshake with the receiver."""
        self._spare(sock)
        try:
            _, wire = await asyncio.get_running_loop().create_connection(
                self._connector._factory, sock=sock,
                ssl=self._connector._get_ssl_context(cast(ClientRequest, route)),
                server_hostname=route.host.rstrip(".") if route.tls else None,
            )  # fmt: skip
        except ssl.CertificateError as error:
            raise ClientConnectorCertificateError(route.connection_key, error) from error
        except ssl.SSLError as error:
            raise ClientConnectorSSLError(route.connection_key, error) from error
        cast(Wire, wire).address = address
        return wire

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
        self._spare(sock)
        return sock

    def _spare(self, sock: socket.socket) -> None:
        """Close idle connections when a new socket shows that few descriptors are left."""
        # The kernel gives the lowest free number, so by now all below it are taken.
        if sock.fileno() >= self._scarce:
            self._close_idle()

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


class _Connector(TCPConnector):
    """aiohttp's connector, with another way to create some connections."""

    def __init__(
        self, create: Callable[[Route, Direct], Awaitable[ResponseHandler]], **settings: Any
    ) -> None:
        super().__init__(**settings)
        self._create = create

    async def _create_connection(
        self, req: ClientRequest, traces: list[Any], timeout: ClientTimeout
    ) -> ResponseHandler:
        direct = super()._create_connection

        async def connect(route: Route) -> ResponseHandler:
            return await direct(cast(ClientRequest, route), traces, timeout)

        return await self._create(cast(Route, req), connect)


def few_left_from() -> float:
    """Return the number of a descriptor from which on few are left."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if most == resource.RLIM_INFINITY else most - most // SPARE_SHARE
