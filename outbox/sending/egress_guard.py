"""The egress guard: checks every connection of a delivery.

It checks twice, because each check sees what the other cannot: `Guard.resolve` checks all addresses
of a name before any is used, and `Guard.open_socket` checks the address of the connection, IP
literals included. outbox.sending.addresses lists the allowed addresses, outbox.sending.urls the
allowed forms of a URL.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.helpers import is_ip_address

from outbox.clock import Clock
from outbox.sending.addresses import Rules, may_dial
from outbox.sending.lookups import FRESH_SECONDS, LookUp, Lookups, ask_system
from outbox.sending.staggered import interleaved
from outbox.sending.urls import refused

MOST_ADDRESSES = 8
RECEIVE_BUFFER = 32 * 1024
"""Responses are small; a large buffer would only let a hostile receiver fill the memory."""


class Guard(AbstractResolver):
    """The two checks of one process; an aiohttp connector uses both methods.

    `look_up` queries the name servers; only tests pass another function.
    """

    def __init__(self, rules: Rules, clock: Clock, look_up: LookUp = ask_system) -> None:
        self.rules = rules
        # With half for the answer, it and a connection made with it last no longer together.
        self._lookups = Lookups(clock, look_up, min(FRESH_SECONDS, rules.connection_seconds / 2))

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of `host` if all of them are allowed at `port`.

        Raise Refused, or LookupFailed after at most 5 s.
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
            # In turns before the cut: many of one family would leave none of the other.
            for address in interleaved(addresses)[:MOST_ADDRESSES]
        ]

    def must_allow(self, address: str, port: int) -> None:
        """Raise Refused for an address that no connection may reach, directly or by a proxy."""
        if not may_dial(address, port, self.rules):
            raise refused(self.rules)

    async def addresses(self, host: str) -> Sequence[str]:
        """Return the addresses of one of the operator's proxies. Raise LookupFailed."""
        if is_ip_address(host):
            return [host]
        return interleaved(await self._lookups.addresses(host))[:MOST_ADDRESSES]

    def age(self, host: str) -> float:
        """Return how long the addresses of `host` are known, in seconds; 0 for an unknown host."""
        return self._lookups.age(host)

    async def judge(self, host: str, port: int) -> list[tuple[str, bool]]:
        """Return the addresses of `host` and whether each is allowed; only for the operator.

        Raise LookupFailed.
        """
        addresses = await self._lookups.addresses(host)
        return [(address, may_dial(address, port, self.rules)) for address in addresses]

    def open_socket(self, address_info: tuple[Any, ...]) -> socket.socket:
        """Create a socket for the address of the next connection. Raise Refused, OSError."""
        family, kind, protocol, _, sockaddr = address_info
        self.must_allow(str(sockaddr[0]), int(sockaddr[1]))
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        except OSError:
            sock.close()
            raise
        return sock

    async def close(self) -> None:
        await self._lookups.close()
