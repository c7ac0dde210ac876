"""Converts origins (scheme, host and port) to the spelling of browsers.

RFC 6454, section 6: lower case, ASCII, no default port. A dot at the end of the host is removed,
because it names the same host.
"""

import ipaddress
import re
from functools import lru_cache

from gateway.records.values.emails import ascii_domain

_SHAPE = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^\s/?#@:%\\\[\]]+)(?::(?P<port>[^/?#@]*))?/*",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_DEFAULTS = {"http": "80", "https": "443"}


def normal(text: str) -> str:
    """Return the origin `text` in its normal spelling. Raise ValueError with a sentence."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} must be only scheme and host, such as https://crm.example.com")
    scheme, port = match["scheme"].lower(), match["port"]
    if port is not None and not (_PORT.fullmatch(port) and int(port) <= 65_535):
        raise ValueError(f"the port of {text!r} must be a number from 1 to 65535")
    host = _host(match["host"].lower())
    if host is None:
        raise ValueError(f"{text!r} must have a valid host, such as crm.example.com")
    return f"{scheme}://{host}" + ("" if port in (None, _DEFAULTS[scheme]) else f":{port}")


# Most requests contain one of the same few origins and hosts.
@lru_cache(maxsize=1024)
def spelled(text: str) -> str:
    """Return the normal spelling of a client's text; an invalid text in lower case."""
    try:
        return normal(text)
    except ValueError:
        return text.lower()


def _host(text: str) -> str | None:
    try:
        if text.startswith("["):
            return f"[{ipaddress.IPv6Address(text[1:-1]).compressed}]"
        name = ascii_domain(text).removesuffix(".")
        labels = name.split(".")
        # Browsers treat a host whose last label is a number as an IPv4 address.
        if _NUMERIC.fullmatch(labels[-1]):
            return str(ipaddress.IPv4Address(name))
    except ValueError:
        return None
    good = len(name) <= 253 and all(_LABEL.fullmatch(label) for label in labels)
    return name if good else None
