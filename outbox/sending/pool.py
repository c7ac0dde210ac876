"""The pool of kept connections: aiohttp's, without the steps that this product does not need.

A route is where the requests to one URL go, and the start of their heads.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection
from yarl import URL

from outbox.sending.request import DIRECT, Via
from outbox.sending.urls import Target
from outbox.sending.wire import Wire

FRESH_KEY = 1


class Route:
    """The destination of requests to one URL, as a connector needs it, and the head's start."""

    __slots__ = ("_start", "connection_key", "host", "literal", "port", "tls", "via")

    proxy = None
    """That of aiohttp."""

    def __init__(self, target: Target, via: Via = DIRECT) -> None:
        self.via = via
        self.host = target.host
        self.port = target.port
        self.literal = target.literal
        self.tls = target.scheme == "https"
        self.connection_key = ConnectionKey(
            target.host, target.port, self.tls, True,
            # Connections with another certificate or proxy are never used: none is shared.
            None if via is DIRECT else cast(URL, via), proxy_auth=None, proxy_headers_hash=None,
        )  # fmt: skip
        self._start = (
            f"POST {target.path} HTTP/1.1\r\n"
            f"Host: {target.url.host_port_subcomponent}\r\n"
            "Content-Length: "
        )

    def apart(self) -> Route:
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


KEEP_ALIVE_SECONDS = 15.0


class Pool(TCPConnector):
    """aiohttp's pool, whose connections are made by `create` and retire at their age."""

    def __init__(self, create: Callable[[Route], Awaitable[Wire]], **settings: Any) -> None:
        super().__init__(**settings)
        self._create = create

    def take(self, key: ConnectionKey, began: float) -> Wire | None:
        """Return a kept connection for a request that `began` then, or None."""
        # As aiohttp does, and by age too. Only unused ones end: no request fails by it.
        pooled = self._conns.get(key)
        if pooled is None:
            return None
        idle_since = self._loop.time() - KEEP_ALIVE_SECONDS
        wire: Any
        while pooled:
            wire, released = pooled.popleft()
            if began < wire.retires and released >= idle_since and wire.is_connected():
                if not pooled:
                    del self._conns[key]
                self._acquired.add(wire)
                connection: Wire = wire
                return connection
            wire.close()
        del self._conns[key]
        return None

    def keep(self, key: ConnectionKey, wire: Wire) -> None:
        """Keep a connection that may carry another request."""
        if self._closed or self._cleanup_handle is None:
            self._release(key, wire)
            return
        # As aiohttp does; there is no limit for which others could wait.
        self._acquired.discard(wire)
        self._conns[key].append((wire, self._loop.time()))

    async def _get(self, key: ConnectionKey, traces: list[Any]) -> Connection | None:
        # `take` has looked.
        return None

    async def _create_connection(
        self, req: ClientRequest, traces: list[Any], timeout: ClientTimeout
    ) -> ResponseHandler:
        return await self._create(cast(Route, req))
