"""Reaching a server: the hosts of a URL one by one, and sockets that notice a dead peer."""

from __future__ import annotations

import socket
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from outbox.database.postgres.faults import GOING, LOST

CONNECT_SECONDS = 4.0
# A peer that has gone without a word is found after so long, before a request's own limit.
SILENCE_MILLISECONDS = 5000
KEEPALIVE = {"TCP_KEEPIDLE": 2, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 3}

# asyncpg has no types, and its pool hands out proxies.
Connection: TypeAlias = Any


class Hosts:
    """The servers of one URL, such as `postgresql://user@one,two:5433/name`."""

    def __init__(self, url: str) -> None:
        self._urls = _each(url)

    async def connect(self, *_: object, **options: Any) -> Connection:
        """A connection to the first host that answers as the URL wants, the last good one first.

        `options` are asyncpg.connect's; it is asyncpg.create_pool's `connect`, too.
        """
        seconds = CONNECT_SECONDS / len(self._urls)
        fault: BaseException | None = None
        for url in tuple(self._urls):
            try:
                connection = await asyncpg.connect(url, **(options | {"timeout": seconds}))
            except (*LOST, *GOING) as error:
                fault = error
                continue
            self._urls.remove(url)
            self._urls.insert(0, url)
            _watch(connection)
            return connection
        raise fault or AssertionError("a URL has at least one host")


def is_gone(connection: Connection) -> bool:
    """Whether it is closed, or was so when its pool took it back."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def _each(url: str) -> list[str]:
    """One URL for each host: asyncpg gives all of them one timeout, which a silent one uses up."""
    parts = urlsplit(url)
    user, at, hosts = parts.netloc.rpartition("@")
    return [
        urlunsplit(parts._replace(netloc=f"{user}{at}{host.strip()}")) for host in hosts.split(",")
    ]


def _watch(connection: Connection) -> None:
    sock = connection._transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (*KEEPALIVE.items(), ("TCP_USER_TIMEOUT", SILENCE_MILLISECONDS)):
        # Not every system has all of them.
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
