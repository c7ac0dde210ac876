"""Decide which IP addresses and ports deliveries may use: fixed tables and the operator's list.

The tables are IANA's special-purpose registries plus the metadata services of cloud providers.
`ipaddress.is_global` is not enough: it is true for NAT64, 6to4, v4-compatible and multicast
addresses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from outbox.sending.proxies import Proxy

Address = IPv4Address | IPv6Address

REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers; Alibaba's metadata service
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform service
        "169.254.0.0/16",  # link-local; most metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata service
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
GLOBAL_V6 = IPv6Network("2000::/3")
REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, Teredo, benchmarks, ORCHID, AMT
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: obsolete, and holds an IPv4 address
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # 6bone
        "3fff::/20",  # documentation
    )
)
# The real destination is the IPv4 address in the last 32 bits.
EMBEDDING_V6 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))

LOWEST_FREE_PORT = 1024
WEB_PORTS = frozenset({80, 443})
# Services that accept lines of text or any HTTP POST without authentication.
REFUSED_PORTS = frozenset(
    (
        1080, 1433, 1521, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3128, 3306, 3389, 4369, 4505,
        4506, 4646, 5432, 5433, 5671, 5672, 5900, 5984, 5985, 5986, 6000, 6379, 6380, 6443, 7474,
        7687, 8009, 8086, 8125, 8200, 8300, 8301, 8500, 8600, 9042, 9092, 9100, 9160, 9200, 9300,
        9418, 10250, 10255, 11211, 11434, 15672, 16379, 26257, 27017, 27018, 27019, 28015, 61616,
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """An allowed address range and the one port it is allowed at (None: the usual ports)."""

    network: IPv4Network | IPv6Network
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """The operator's additions to the tables, and their settings' names for error messages.

    `proxies` are the egress proxies that webhooks may use, by name; with `proxies_resolve` they get
    host names. `ca_file` has authorities to trust beside the system's. No connection is used for
    longer than `connection_seconds`.
    """

    allow_http: bool = False
    allow: tuple[Place, ...] = ()
    http_setting: str = "the option --allow-http, and --allow for a private address"
    allow_setting: str = "the option --allow"
    proxies: Mapping[str, Proxy] = field(default_factory=dict, hash=False)
    proxies_resolve: bool = False
    ca_file: str = ""
    connection_seconds: float = 60.0


def parse_place(text: str) -> Place:
    """Parse `CIDR` or `CIDR:port`; with a port, IPv6 needs brackets. Raise ValueError."""
    network, port = text, ""
    if text.startswith("["):
        network, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"{text!r} must have the form [IPv6/bits]:port")
        port = rest[1:]
        if rest and not port:
            raise ValueError(f"{text!r} has no port after the colon")
    elif text.count(":") == 1:
        network, _, port = text.partition(":")
        if not port:
            raise ValueError(f"{text!r} has no port after the colon")
    if port and not (port.isascii() and port.isdecimal() and 1 <= int(port[:6]) <= 65535):
        raise ValueError(f"the port of {text!r} must be between 1 and 65535")
    try:
        return Place(ip_network(network), int(port) if port else None)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a network such as 10.1.2.0/24: {error}") from None


def is_public(address: Address) -> bool:
    """Return whether the tables allow connections to `address`."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in REFUSED_V4)
    inside = _inside(address)
    if inside is not None:
        return is_public(inside)
    # A zone selects one of this machine's interfaces.
    if address.scope_id is not None or address not in GLOBAL_V6:
        return False
    return not any(address in network for network in REFUSED_V6)


def is_usual_port(port: int) -> bool:
    """Return whether deliveries may use the port without a setting of the operator."""
    return port in WEB_PORTS or (port >= LOWEST_FREE_PORT and port not in REFUSED_PORTS)


def port_may_open(port: int, rules: Rules) -> bool:
    """Return whether any address may be allowed at `port`; the address is checked later."""
    return is_usual_port(port) or any(place.port == port for place in rules.allow)


def may_dial(address: str, port: int, rules: Rules) -> bool:
    """Return whether deliveries may go to the IP address at `port`; False for invalid text."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    usual = is_usual_port(port)
    if usual and is_public(parsed):
        return True
    inside = _inside(parsed) if isinstance(parsed, IPv6Address) else None
    candidates = (parsed,) if inside is None else (parsed, inside)
    return any(
        candidate.version == place.network.version
        and candidate in place.network
        and (place.port == port or (place.port is None and usual))
        for place in rules.allow
        for candidate in candidates
    )


def _inside(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that a connection to this one reaches, if any."""
    if any(address in network for network in EMBEDDING_V6):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
