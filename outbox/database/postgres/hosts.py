"""Connect to the hosts of a URL in turn, with sockets that detect a dead peer."""

from __future__ import annotations

import socket
import ssl
from datetime import datetime
from typing import Any, TypeAlias

import asyncpg

from outbox.database import postgres_url
from outbox.database.postgres.faults import GOING, LOST, is_full
from outbox.database.postgres.tls import Tls, UnusableSettings, Way
from outbox.database.postgres_url import Host
from outbox.errors import CannotStart

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
_ARGUMENTS = ("passfile", "target_session_attrs", "krbsrvname", "gsslib")
"""Parameters of the URL that are arguments of the driver."""


class Session(asyncpg.Connection):  # type: ignore[misc]
    """A connection that notes warnings of the server.

    It knows when its session on the server has `started`, if it has its own.
    """

    __slots__ = ("_warned", "started")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.started: datetime | None = None
        self._warned = False

    def heard_warning(self) -> bool:
        """Return whether the server has warned since this was asked last."""
        warned, self._warned = self._warned, False
        return warned

    def _process_log_message(self, fields: dict[str, str], last_query: str) -> None:
        # Only the severity counts: the text is in the server's language, and it warns of nothing
        # but COMMIT. A listener for each statement costs more than the rest of its call.
        if fields.get("V", fields.get("S")) == "WARNING":
            self._warned = True
        super()._process_log_message(fields, last_query)


class Hosts:
    """The servers of one URL, such as `postgresql://user@one,two:5433/name`."""

    def __init__(self, url: str, setting: str = "database.url") -> None:
        """`setting` has the URL, for messages. Raise CannotStart for a wrong URL."""
        self.setting = setting
        try:
            self.url = postgres_url.parse(url)
        except ValueError as error:
            raise CannotStart(f"{setting}: {error}") from None
        self._tls = Tls(self.url.driver)
        self._plain: set[Host | None] = set()
        """The hosts that take no TLS, where it is not required."""
        # asyncpg's one timeout for all hosts would go to a silent one.
        self._hosts: list[Host | None] = [*self.url.hosts] or [None]
        self.failed: dict[Host | None, BaseException] = {}
        """Why the last attempt to connect failed, by host."""

    async def connect(self, *_: object, **options: Any) -> Connection:
        """Connect to the first suitable host of the URL; try the last successful one first.

        `options` are those of asyncpg.connect. Raise UnusableSettings, or an error of asyncpg.
        """
        seconds = CONNECT_SECONDS / len(self._hosts)
        failed: dict[Host | None, BaseException] = {}
        for host in tuple(self._hosts):
            try:
                connection = await self._connect(host, options | {"timeout": seconds})
            except Exception as error:
                failed[host] = error
                self.failed = failed
                if isinstance(error, UnusableSettings) or not isinstance(error, (*LOST, *GOING)):
                    raise
                continue
            self._hosts.remove(host)
            self._hosts.insert(0, host)
            _watch(connection)
            return connection
        raise list(failed.values())[-1]

    async def _connect(self, host: Host | None, options: dict[str, Any]) -> Connection:
        """Connect with TLS or without it, as the URL says."""
        url = self.url
        if url.settings:
            options["server_settings"] = {**url.settings, **(options.get("server_settings") or {})}
        options |= {name: url.driver[name] for name in _ARGUMENTS if name in url.driver}
        ways = self._tls.ways(by_socket=host is not None and host.is_socket)
        if host in self._plain:
            ways.reverse()

        options.setdefault("connection_class", Session)

        async def connect(way: Way) -> Connection:
            return await asyncpg.connect(
                host=None if host is None else host.name,
                port=url.port if host is None else host.port,
                user=url.user, password=url.password, database=url.database,
                ssl=way, direct_tls=way is not False and self._tls.at_once, **options,
            )  # fmt: skip

        first: BaseException | None = None
        for way in ways[:-1]:
            try:
                return await connect(way)
            except (ConnectionError, ssl.SSLError, asyncpg.PostgresError) as error:
                if is_full(error) or isinstance(error, _SAME_BY_ANY_WAY):
                    raise
                if has_no_tls(error) and way is not False:
                    self._plain.add(host)
                first = error
        try:
            return await connect(ways[-1])
        except ConnectionError as error:
            # Without TLS, what the server has said before is the cause.
            raise (first if first is not None and has_no_tls(error) else error) from None


def has_no_tls(error: BaseException) -> bool:
    """Return whether the driver says that the server takes no TLS, or is no PostgreSQL."""
    return type(error) is ConnectionError and "rejected SSL" in str(error)


def is_gone(connection: Connection) -> bool:
    """Return whether the connection is closed, or was closed when its pool took it back."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def _watch(connection: Connection) -> None:
    sock = connection._transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (*KEEPALIVE.items(), ("TCP_USER_TIMEOUT", SILENCE_MILLISECONDS)):
        # Not every system has all of these options.
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
