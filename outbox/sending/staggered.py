"""Connect to the first of several addresses that answers, both families in turn (RFC 8305)."""

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import chain, zip_longest

STAGGER_SECONDS = 0.25
"""Between the starts of connections to two addresses (RFC 8305, 8)."""
Place = tuple[str, int] | tuple[str, int, int, int]
Connect = Callable[[str], Awaitable[socket.socket]]
"""Connects to one address; closes its socket when it fails or is cancelled."""


def interleaved(addresses: Iterable[str]) -> list[str]:
    """Return each address once, the families in turn, that of the first address first."""
    families: dict[bool, list[str]] = {}
    for address in dict.fromkeys(addresses):
        families.setdefault(":" in address, []).append(address)
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


async def first_connected(
    addresses: Sequence[str], connect: Connect, delay: float
) -> tuple[str, socket.socket]:
    """Return the first connected socket and its address; each try starts `delay` after the last.

    A failed one starts the next at once, and none is given up before all have failed. Raise the
    last OSError then, and any other error at once.
    """
    if len(addresses) == 1:
        return addresses[0], await connect(addresses[0])
    waiting = deque(addresses)
    running: dict[asyncio.Future[socket.socket], str] = {}
    failure: OSError | None = None
    try:
        while waiting or running:
            if waiting:
                address = waiting.popleft()
                running[asyncio.ensure_future(connect(address))] = address
            done, _ = await asyncio.wait(
                running, timeout=delay if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if error is None:
                    return running.pop(task), task.result()
                del running[task]
                if not isinstance(error, OSError):
                    raise error
                failure = error
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close)
    assert failure is not None
    raise failure


def place_for(address: str, port: int) -> tuple[socket.AddressFamily, Place]:
    """Return the family of an address, and what a socket connects to."""
    if ":" in address:
        return socket.AF_INET6, (address, port, 0, 0)
    return socket.AF_INET, (address, port)


async def connected(sock: socket.socket, place: Place) -> socket.socket:
    """Connect a new socket, or close it."""
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


def _close(late: asyncio.Future[socket.socket]) -> None:
    """Close a socket that another one has overtaken."""
    if not late.cancelled() and late.exception() is None:
        late.result().close()
