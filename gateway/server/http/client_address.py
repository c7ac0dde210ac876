"""Determines the client of a request, also behind proxies.

`X-Forwarded-For`, `-Proto` and `-Host` count only from `[server] trusted_proxies`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from aiohttp import web
from multidict import MultiMapping

from gateway.domain.accounts.networks import Networks, parse
from gateway.server.telemetry.logs import logger


class Client(NamedTuple):
    """The client of a request: its address, and the scheme and host that it used.

    `outside` means that an untrusted proxy, or one without X-Forwarded-For, forwarded the request:
    the address is that of the proxy, and the client's address is unknown.
    """

    address: str
    scheme: str
    host: str
    outside: bool


CLIENT = web.RequestKey("CLIENT", Client)


class Proxies:
    """A reader of forwarding headers that logs one warning about an untrusted sender."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._trusted = Networks(trusted)
        self._warned = False

    def client(self, peer: str, scheme: str, host: str, headers: MultiMapping[str]) -> Client:
        """Return the client of a forwarded request from `peer`, with its `scheme` and `host`."""
        if not self._trusted.hold(peer):
            self._warn(peer)
            return Client(peer, scheme, host, True)
        hops = _words(headers, "X-Forwarded-For")
        address, place, known = peer, -1, False
        for index in range(len(hops) - 1, -1, -1):
            hop = parse(hops[index])
            if hop is None:
                break
            address, place, known = str(hop), index - len(hops), True
            if not self._trusted.hold(address):
                break
        # Each proxy of a chain may add a value ("https, http"): the client's value has the same
        # position as its address. If only some proxies add one, the last value counts.
        schemes = _words(headers, "X-Forwarded-Proto")
        hosts = _words(headers, "X-Forwarded-Host")
        claimed = _at(schemes, place, len(hops)).lower()
        return Client(
            address,
            claimed if claimed in ("http", "https") else scheme,
            _at(hosts, place, len(hops)) or host,
            not known,
        )

    def _warn(self, peer: str) -> None:
        if not self._warned:
            self._warned = True
            logger().warning(
                "forwarded_by_untrusted_peer",
                peer=peer,
                hint="add the proxy's network to [server] trusted_proxies to use its headers",
            )


def _words(headers: MultiMapping[str], name: str) -> list[str]:
    """Return the values of a header; a proxy may add its own line after the client's."""
    return [
        word.strip()
        for line in headers.getall(name, ())
        for word in line.split(",")
        if word.strip()
    ]


def _at(words: Sequence[str], place: int, hops: int) -> str:
    if not words:
        return ""
    return words[place] if len(words) == hops else words[-1]
