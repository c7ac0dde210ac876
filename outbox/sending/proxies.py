"""The operator's egress proxies, and a tunnel through one by HTTP CONNECT.

The proxy gets an address that the guard has allowed: a proxy that looks names up by itself could
connect to another address than the guard has checked. It gets names only where the operator says
that it alone has name servers; what they resolve to is then for the proxy to judge.
"""

import asyncio
import base64
import os
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from outbox.sending.staggered import STAGGER_SECONDS, connected, first_connected, place_for

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
LARGEST_HEAD = 8 * 1024
"""Bytes of a proxy's response."""
STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})[ \r]")
CONTROL = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class Proxy:
    """An egress proxy that the operator allows; `authorization` is a header's value, or empty."""

    name: str
    host: str
    port: int
    authorization: str = field(default="", repr=False)


class ProxyFailed(OSError):
    """The tunnel was not made; the text says why, without names or addresses of the network."""


def parse_proxy(name: str, url: str) -> Proxy:
    """Parse `http://[user:password@]host:port`. Raise ValueError, whose text has no password."""
    if not NAME.fullmatch(name):
        raise ValueError(
            f"the name {name[:40]!r} must have 1 to 32 lower-case letters, digits and hyphens"
        )
    wrong = f"{name} must be http://host:port or http://user:password@host:port"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if parts.scheme != "http" or not parts.hostname or not port or CONTROL.search(url):
        raise ValueError(wrong)
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError(wrong)
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
    return Proxy(name, parts.hostname, port, authorization)


async def open_tunnel(
    proxy: Proxy, proxy_addresses: Sequence[str], address: str, port: int
) -> socket.socket:
    """Return a connected socket whose other end is `address`. Raise ProxyFailed."""
    loop = asyncio.get_running_loop()
    sock = await _reach(proxy, proxy_addresses)
    try:
        place = place_of(address, port)
        head = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n"
        if proxy.authorization:
            head += f"Proxy-Authorization: {proxy.authorization}\r\n"
        await loop.sock_sendall(sock, f"{head}\r\n".encode("ascii"))
        fault = _fault(await _head(loop, sock))
    except OSError as error:
        sock.close()
        fault = "closed the connection"
        raise ProxyFailed(f"the proxy {proxy.name} {fault}") from error
    except BaseException:
        sock.close()
        raise
    if fault:
        sock.close()
        raise ProxyFailed(f"the proxy {proxy.name} {fault}")
    return sock


def place_of(address: str, port: int) -> str:
    """Return an address with its port, as in a URL."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


async def _reach(proxy: Proxy, addresses: Sequence[str]) -> socket.socket:
    """Connect to the first address of the proxy that accepts a connection."""

    async def connect(address: str) -> socket.socket:
        family, place = place_for(address, proxy.port)
        return await connected(socket.socket(family, socket.SOCK_STREAM), place)

    try:
        return (await first_connected(addresses, connect, STAGGER_SECONDS))[1]
    except OSError as error:
        why = "" if error.errno is None else f": {os.strerror(error.errno).lower()}"
        raise ProxyFailed(f"the proxy {proxy.name} cannot be reached{why}") from error


async def _head(loop: asyncio.AbstractEventLoop, sock: socket.socket) -> bytes:
    """Read the head of the proxy's response, and nothing behind it."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = await loop.sock_recv(sock, LARGEST_HEAD - len(head))
        head += part
        if not part or len(head) >= LARGEST_HEAD or b"\r\n\r\n" in head[:-4]:
            # Nothing follows a success: the receiver waits for the request.
            break
    return head


def _fault(head: bytes) -> str | None:
    """Return what a proxy's response means for the owner; None when the tunnel is open."""
    match = STATUS.match(head)
    if match is None:
        return "closed the connection" if not head else "did not answer as an HTTP proxy"
    status = int(match[1])
    if 200 <= status < 300:
        return None if head.endswith(b"\r\n\r\n") else "did not answer as an HTTP proxy"
    if status == 407:
        return "refused its credentials (407); the operator has to correct them"
    if status == 403:
        return "does not allow this receiver (403)"
    if status >= 500:
        return f"could not connect to the receiver ({status})"
    return f"refused the connection ({status})"
