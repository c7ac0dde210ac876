"""Who is at the other end, when proxies may stand between.

`X-Forwarded-For`, `-Proto` and `-Host` count only when they come from `[server] trusted_proxies`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from multidict import MultiMapping

from gateway.domain.accounts.networks import Networks, parse
from gateway.server.telemetry.logs import logger


class Client(NamedTuple):
    """The other end of a request: its address, and the scheme and host that it used.

    `outside` says that the request was forwarded by a proxy that is not trusted, or that did not
    tell for whom, so that the address is the proxy's and says nothing of who is behind it.
    """

    address: str
    scheme: str
    host: str
    outside: bool


class Proxies:
    """Reads forwarding headers, and warns once when an untrusted peer sends them."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._trusted = Networks(trusted)
        self._warned = False

    def client(self, peer: str, scheme: str, host: str, headers: MultiMapping[str]) -> Client:
        """The client of a request that came from `peer` over `scheme` asking for `host`."""
        # Spelled out, because this runs for every request.
        if not (
            "X-Forwarded-For" in headers
            or "X-Forwarded-Proto" in headers
            or "X-Forwarded-Host" in headers
            or "Forwarded" in headers
        ):
            return Client(peer, scheme, host, False)
        if not self._trusted.hold(peer):
            self._warn(peer)
            return Client(peer, scheme, host, True)
        hops = _words(headers, "X-Forwarded-For")
        address, place, told = peer, -1, False
        for index in range(len(hops) - 1, -1, -1):
            hop = parse(hops[index])
            if hop is None:
                break
            address, place, told = str(hop), index - len(hops), True
            if not self._trusted.hold(address):
                break
        # A chain of proxies may each have added its word ("https, http"): the client's stands
        # where its address stands; where only some proxies add one, the last word counts.
        schemes = _words(headers, "X-Forwarded-Proto")
        hosts = _words(headers, "X-Forwarded-Host")
        claimed = _at(schemes, place, len(hops)).lower()
        return Client(
            address,
            claimed if claimed in ("http", "https") else scheme,
            _at(hosts, place, len(hops)) or host,
            not told,
        )

    def _warn(self, peer: str) -> None:
        if not self._warned:
            self._warned = True
            logger().warning(
                "forwarded_by_untrusted_peer",
                peer=peer,
                hint="add the proxy's network to [server] trusted_proxies, or it is ignored",
            )


def _words(headers: MultiMapping[str], name: str) -> list[str]:
    """The words of a header; a proxy may have added a line of its own below the client's."""
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
