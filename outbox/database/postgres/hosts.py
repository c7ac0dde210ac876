"""Connect to the hosts of a URL in turn, with sockets that detect a dead peer."""

from __future__ import annotations

import getpass
import os
import socket
import ssl
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import asyncpg

from outbox.database.postgres.faults import GOING, LOST, is_full
from outbox.database.postgres.tls import Tls, UnusableSettings

CONNECT_SECONDS = 4.0
# A silently lost peer is detected after this time, before a request reaches its own limit.
SILENCE_MILLISECONDS = 5000
KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3}

# asyncpg has no types, and its pool returns proxies.
Connection: TypeAlias = Any

_SAME_BY_ANY_WAY = (
    asyncpg.InvalidPasswordError, asyncpg.CannotConnectNowError, ConnectionRefusedError,
    asyncpg.InvalidCatalogNameError, asyncpg.InsufficientPrivilegeError,
)  # fmt: skip
"""What the server answers whether the connection has TLS or not."""


class Session(asyncpg.Connection):  # type: ignore[misc]
    """A connection that knows when its session on the server has started, if it has its own."""

    __slots__ = ("started",)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.started: datetime | None = None


class Hosts:
    """The servers of one URL, such as `postgresql://user@one,two:5433/name`."""

    def __init__(self, url: str, setting: str = "database.url") -> None:
        """`setting` has the URL, for messages."""
        self.setting = setting
        self._urls = _each(url)
        self._tls = {one: Tls(one) for one in self._urls}
        self._plain: set[str] = set()
        """The URLs whose server takes no TLS, where it is not required."""

    async def connect(self, *_: object, **options: Any) -> Connection:
        """Connect to the first suitable host of the URL; try the last successful one first.

        `options` are those of asyncpg.connect. Raise UnusableSettings, or an error of asyncpg.
        """
        seconds = CONNECT_SECONDS / len(self._urls)
        fault: BaseException | None = None
        for url in tuple(self._urls):
            try:
                connection = await self._connect(url, options | {"timeout": seconds})
            except UnusableSettings:
                raise
            except (*LOST, *GOING) as error:
                fault = error
                continue
            self._urls.remove(url)
            self._urls.insert(0, url)
            _watch(connection)
            return connection
        raise fault or AssertionError("a URL needs at least one host")

    async def _connect(self, url: str, options: Mapping[str, Any]) -> Connection:
        """Connect with TLS or without it, as the URL says."""
        _must_have_role(url)
        ways = self._tls[url].ways()
        if url in self._plain:
            ways.reverse()
        for way in ways[:-1]:
            try:
                return await asyncpg.connect(url, ssl=way, **options)
            except (ConnectionError, ssl.SSLError, asyncpg.PostgresError) as error:
                if is_full(error) or isinstance(error, _SAME_BY_ANY_WAY):
                    raise
                if type(error) is ConnectionError and way is not False:
                    # The driver says by this error that the server has no TLS.
                    self._plain.add(url)
        return await asyncpg.connect(url, ssl=ways[-1], **options)


def is_gone(connection: Connection) -> bool:
    """Return whether the connection is closed, or was closed when its pool took it back."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def _each(url: str) -> list[str]:
    """Return one URL per host: asyncpg's one timeout for all hosts would go to a silent one."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    return [
        urlunsplit(parts._replace(netloc=f"{user}{at}{host.strip()}")) for host in hosts.split(",")
    ]


def _must_have_role(url: str) -> None:
    parts = urlsplit(url)
    if parts.username or "user" in dict(parse_qsl(parts.query)) or os.environ.get("PGUSER"):
        return
    try:
        getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user without a name.
        raise UnusableSettings(
            "the URL names no role: write postgresql://ROLE:PASSWORD@HOST:PORT/DATABASE"
        ) from None


def _watch(connection: Connection) -> None:
    sock = connection._transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (*KEEPALIVE.items(), ("TCP_USER_TIMEOUT", SILENCE_MILLISECONDS)):
        # Not every system has all of these options.
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
