"""Open connections that the guard allows, for the requests of all webhooks.

aiohttp's connector keeps the pool; a ClientSession above it would cost more than the rest of a
send.
"""

import asyncio
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import Any, cast

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorSSLError,
    ClientRequest,
    ClientTimeout,
)

from outbox.clock import Clock
from outbox.sending.client_certificates import Contexts, Trust
from outbox.sending.egress_guard import Guard
from outbox.sending.lookups import LookupFailed
from outbox.sending.outcome import system
from outbox.sending.pool import KEEP_ALIVE_SECONDS, Pool, Route
from outbox.sending.proxies import ProxyFailed, open_tunnel, place_of
from outbox.sending.staggered import STAGGER_SECONDS, Connect, connected, first_connected, place_for
from outbox.sending.trust import prepared, shared, trust_of
from outbox.sending.urls import Refused
from outbox.sending.wire import Progress, Wire, current

TUNNEL_STAGGER_SECONDS = 0.5
"""The same through a proxy, which has a way to both."""
AGAIN_SECONDS = 1.0
"""For the other addresses of a host after TLS has failed at one; what is slow would take longer."""
NO_TLS = "TLS failed"
SPARE_SHARE = 4
"""Idle connections close when less than a fourth of the process's descriptors may be free.

They close in the event loop's next round; all slots may open a connection in this one.
"""

CONNECT = ClientTimeout()
"""Connecting and TLS share the webhook's timeout with the rest of the attempt."""


class Dialler:
    """Opens connections that the guard allows, and notes each step in the attempt's progress."""

    def __init__(
        self, guard: Guard, clock: Clock, trust: Trust | None, scarce_from: float | None
    ) -> None:
        rules = guard.rules
        self._guard = guard
        self._clock = clock
        self._scarce = few_left_from() if scarce_from is None else scarce_from
        self._contexts = Contexts(trust or trust_of(rules.ca_file))
        self._context = shared(rules.ca_file) if trust is None else prepared(trust())
        self._connector = Pool(
            self._create,
            limit=0,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            # No other one is made, which would open sockets of its own.
            resolver=guard,
        )

    def pooled(self, route: Route, progress: Progress) -> Wire | None:
        """Return a connection of the pool, or None when there is none."""
        wire = self._connector.take(route.connection_key, progress.began)
        if wire is not None:
            progress.wire = wire
            progress.stage = "answer"
        return wire

    async def connect(self, route: Route, progress: Progress) -> Wire:
        """Return a new connection, which is in `progress` too."""
        token = current.set(progress)
        try:
            connection = await self._connector.connect(cast(ClientRequest, route), [], CONNECT)
        finally:
            current.reset(token)
        wire = cast(Wire, connection.protocol)
        # From here on `keep` or `drop` takes it back, at less than its own way costs.
        connection._protocol = None
        if progress.connected is not None and progress.tls:
            progress.secured = self._clock.monotonic()
        progress.wire = wire
        progress.stage = "answer"
        return wire

    def keep(self, route: Route, wire: Wire) -> None:
        """Take a connection back into the pool."""
        self._connector.keep(route.connection_key, wire)

    def drop(self, route: Route, wire: Wire) -> None:
        """Take a connection back that must carry no further request."""
        self._connector._release(route.connection_key, wire, should_close=True)

    async def _create(self, route: Route) -> Wire:
        """Create a connection to the first address that answers, directly or through a proxy."""
        progress = current.get()
        context = None
        if route.tls:
            certificate = route.via.certificate
            context = await self._contexts.of(certificate) if certificate else self._context
        left = await self._allowed(route, progress)
        if route.via.proxy is None:
            connect: Connect = partial(self._dial, route, progress)
            delay = STAGGER_SECONDS
        else:
            connect, delay = await self._tunnels(route, progress), TUNNEL_STAGGER_SECONDS
        progress.tried = tried = dict[str, str]()
        stage = progress.stage
        failure: OSError | None = None
        while True:
            try:
                async with asyncio.timeout(AGAIN_SECONDS if failure else None):
                    address, sock = await first_connected(left, connect, delay)
            except OSError:
                if failure is None:
                    raise
                progress.stage = "tls"
                raise failure  # noqa: B904 - it has its own cause
            try:
                return await self._wire(route, context, sock, address)
            except OSError as error:
                # Another address may have a receiver that speaks TLS, or the right certificate.
                failure = error
                tried[place_of(address, route.port)] = NO_TLS
                left = [one for one in left if not tried.get(place_of(one, route.port))]
                if not left:
                    raise
                # uvloop knows the descriptor, which may be given again, until its next round.
                await asyncio.sleep(0)
                progress.stage = stage

    async def _allowed(self, route: Route, progress: Progress) -> list[str]:
        """Return the addresses to connect to. Raise Refused, ClientConnectorDNSError."""
        try:
            if route.literal:
                self._guard.must_allow(route.host, route.port)
                return [route.host]
            if route.via.proxy is not None and self._guard.rules.proxies_resolve:
                return [route.host]
            progress.stage = "dns"
            began = self._clock.monotonic()
            try:
                addresses = await self._guard.resolve(route.host, route.port, socket.AF_UNSPEC)
            finally:
                progress.resolved_in = self._clock.monotonic() - began
        except Refused as refused:
            progress.refused = refused
            raise
        except LookupFailed as error:
            raise ClientConnectorDNSError(route.connection_key, error) from error
        progress.stage = "connect"
        return [address["host"] for address in addresses]

    async def _dial(self, route: Route, progress: Progress, address: str) -> socket.socket:
        """Return a socket that is connected to an address of the receiver."""
        family, place = place_for(address, route.port)
        info = (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)
        sock = self._open_socket(info, progress)
        with _noted(progress, place_of(address, route.port)):
            return await connected(sock, place)

    async def _tunnels(self, route: Route, progress: Progress) -> Connect:
        """Return what opens a tunnel through the proxy to an address. Raise ProxyFailed."""
        proxy = self._guard.rules.proxies[cast(str, route.via.proxy)]
        progress.stage, progress.proxy = "proxy", proxy.name
        progress.dialled = self._clock.monotonic()
        try:
            own = await self._guard.addresses(proxy.host)
        except LookupFailed:
            raise ProxyFailed(f"the proxy {proxy.name} cannot be found") from None

        async def tunnel(address: str) -> socket.socket:
            with _noted(progress, place_of(address, route.port)):
                sock = await open_tunnel(proxy, own, address, route.port)
            self._spare(sock)
            return sock

        return tunnel

    async def _wire(
        self, route: Route, context: ssl.SSLContext | None, sock: socket.socket, address: str
    ) -> Wire:
        """Return the connection of a socket, after the TLS handshake with the receiver."""
        loop = asyncio.get_running_loop()
        wire: Wire | None = None
        try:
            _, wire = await loop.create_connection(
                partial(Wire, loop, self._clock),
                sock=sock,
                ssl=context,
                server_hostname=route.host if route.tls else None,
            )
        except ssl.CertificateError as error:
            raise ClientConnectorCertificateError(route.connection_key, error) from error
        except ssl.SSLError as error:
            raise ClientConnectorSSLError(route.connection_key, error) from error
        finally:
            if wire is None and not isinstance(loop, asyncio.BaseEventLoop):
                # uvloop has closed the descriptor. The socket does not know so where the receiver
                # was quick to hang up, and would close it again, when it is another one's.
                sock.detach()
        age = 0.0 if route.literal else self._guard.age(route.host)
        wire.retires = self._clock.monotonic() + self._guard.rules.connection_seconds - age
        if route.via.proxy is not None:
            wire.address = f"{place_of(address, route.port)} via {route.via.proxy}"
        return wire

    def _open_socket(self, address_info: tuple[Any, ...], progress: Progress) -> socket.socket:
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
        """Close the pool."""
        await self._connector.close()


@contextmanager
def _noted(progress: Progress, place: str) -> Iterator[None]:
    """Note that a place is tried, and why it fails."""
    tried = progress.tried
    assert tried is not None
    tried[place] = ""
    try:
        yield
    except OSError as error:
        tried[place] = system(error)
        raise


def few_left_from() -> float:
    """Return the number of a descriptor from which on few are left."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if most == resource.RLIM_INFINITY else most - most // SPARE_SHARE
