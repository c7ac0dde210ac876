"""The networks that an address is in: the share of one client, and the wider ones around it."""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Networks:
    """A list of networks, asked with the text of an address."""

    def __init__(self, networks: Sequence[str]) -> None:
        self._networks: list[Network] = [ipaddress.ip_network(text) for text in networks]
        # The same few peers and clients come again and again.
        self.hold = lru_cache(maxsize=4096)(self._hold)

    def _hold(self, text: str) -> bool:
        address = parse(text)
        return address is not None and any(
            address.version == network.version and address in network for network in self._networks
        )


@lru_cache(maxsize=4096)
def parse(text: str) -> Address | None:
    """An address as proxies write it (a port and brackets are allowed), None for anything else."""
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
    """What one subscriber holds: an IPv4 address, or the /64 around an IPv6 address."""
    address = parse(text)
    if address is None:
        return text
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))


WIDER = {4: ((24, 10),), 6: ((56, 3), (48, 10))}
"""Networks around a share, by IP version: how long their prefix is, and how many shares' worth of
tries they may make."""
WORTHS = (1, 3, 10)


@lru_cache(maxsize=4096)
def networks_of(text: str) -> tuple[tuple[str, int], ...]:
    """What an address is limited by: its share, and the networks around it, with their worth."""
    address = parse(text)
    if address is None:
        return ((text, 1),)
    wider = (
        (str(ipaddress.ip_network((int(address), length), strict=False)), worth)
        for length, worth in WIDER[address.version]
    )
    return ((share_of(text), 1), *wider)
