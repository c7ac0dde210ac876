"""The address at which people and programs reach this server."""

import ipaddress

from gateway.server.config import Config

LOCAL = "localhost"


def public_address(config: Config, port: int) -> str:
    """Return the address of this server: `[server] public_url`, else host and port."""
    if config.server.public_url:
        return config.server.public_url.rstrip("/")
    host = _reachable(config.server.host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reachable(host: str) -> str:
    """Return a host that leads to this server from its own machine."""
    if host in ("", "*", "0"):
        return LOCAL
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        # A server of IPv6 alone does not answer where localhost is 127.0.0.1.
        return LOCAL if address.version == 4 else "::1"
    return str(address).replace("%", "%25")
