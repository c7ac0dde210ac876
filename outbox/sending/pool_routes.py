"""Where the requests to one URL go for a pool of connections, and the start of their heads."""

import copy
from collections.abc import Sequence
from typing import cast

from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from outbox.sending.request import DIRECT, Via
from outbox.sending.urls import Target

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
