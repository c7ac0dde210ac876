"""Computes the networks of a client address: its own, and the wider ones around it."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Networks:
    """A list of networks that is searched with the text of an address."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks: list[Network] = [ipaddress.ip_network(text) for text in networks]
        # Few peers and clients send most requests.
        self.hold = lru_cache(maxsize=4096)(self._hold)

    def _hold(self, text: str) -> bool:
        address = parse(text)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """Return an address that may have a port and brackets, or None for other text."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


@lru_cache(maxsize=4096)
def share_of(text: str) -> str:
    """Return the network of one subscriber: an IPv4 address, or the /64 of an IPv6 address."""
    address = parse(text)
    if address is None:
        return text
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


WIDER = {4: ((24, 10),), 6: ((56, 3), (48, 10))}
"""The wider networks by IP version: the length of the prefix, and the limit of attempts as a
multiple of a subscriber's."""
WORTHS = (1, 3, 10)


@lru_cache(maxsize=4096)
def networks_of(text: str) -> tuple[tuple[str, int], ...]:
    """Return the networks that limit an address, each with its multiple of the limit."""
    address = parse(text)
    if address is None:
        return ((text, 1),)
    wider = (
        (str(ipaddress.ip_network((int(address), length), strict=False)), worth)
        for length, worth in WIDER[address.version]
    )
    return ((share_of(text), 1), *wider)
