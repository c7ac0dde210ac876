"""The guard on every request that we send: what may be dialled.

Two gates on the way out, since each sees what the other cannot: `Guard.resolve` judges all
answers of a name before any is used, `Guard.open_socket` judges what is really dialled, IP
literals included. Which addresses those are is told in outbox.sending.addresses, and how a URL is
spelled in outbox.sending.urls.
"""

from __future__ import annotations

import socket
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from outbox.clock import Clock
from outbox.sending.addresses import Rules, may_dial
from outbox.sending.lookups import LookUp, Lookups, ask_system
from outbox.sending.urls import refused

MOST_ADDRESSES = 8
RECEIVE_BUFFER = 32 * 1024
"""A receiver's answer is small; a large buffer only lets a hostile one fill our memory."""


class Guard(AbstractResolver):
    """Both gates of one process; an aiohttp connector takes its two methods.

    `look_up` asks the name servers; only tests hand in another.
    """

    def __init__(self, rules: Rules, clock: Clock, look_up: LookUp = ask_system) -> None:
        self.rules = rules
        self._lookups = Lookups(clock, look_up)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """The addresses of `host`, when all of them may be dialled at `port`.

        Raises Refused, or LookupFailed after at most 5 s.
        """
        addresses = await self._lookups.addresses(host)
        if not all(may_dial(address, port, self.rules) for address in addresses):
            raise refused(self.rules)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses[:MOST_ADDRESSES]
        ]

    def open_socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        """A socket for the address that is about to be dialled. Raises Refused, OSError."""
        family, kind, protocol, _, sockaddr = address_info
        if not may_dial(str(sockaddr[0]), int(sockaddr[1]), self.rules):
            raise refused(self.rules)
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        except OSError:
            opened.close()
            raise
        return opened

    async def close(self) -> None:
        await self._lookups.close()
