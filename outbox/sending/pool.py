"""The pool of kept connections: aiohttp's, without the steps that this product does not need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import ClientRequest, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.connector import Connection

from outbox.sending.pool_routes import Route
from outbox.sending.wire import Wire

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
                found: Wire = wire
                return found
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
