"""A name server on loopback with faults, and the mount of it for a product. Needs root.

What a name does is its first label without digits: `hang`, `servfail`, `nxdomain`, `slow` (it
answers after ten seconds); any other name is 127.0.0.1.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from dnslib import QTYPE, RCODE, RR, A, DNSRecord

from tests.support.requirements import need

ADDRESS = "127.0.0.153"
SLOW_SECONDS = 10.0
FAULTS = ("hang", "servfail", "nxdomain", "slow")
MOUNT = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


@dataclass
class Names(asyncio.DatagramProtocol):
    """The server; `prefix` runs a command whose look-ups go to it."""

    prefix: Sequence[str]
    asked: Counter[str] = field(default_factory=Counter)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        question = DNSRecord.parse(data)
        name = str(question.q.qname)
        kind = name.partition(".")[0].rstrip("0123456789")
        self.asked[kind] += 1
        if kind == "hang":
            return
        answer = question.reply()
        if kind in ("servfail", "nxdomain"):
            answer.header.rcode = getattr(RCODE, kind.upper())
        elif question.q.qtype == QTYPE.A:
            answer.add_answer(RR(name, QTYPE.A, rdata=A("127.0.0.1"), ttl=1))
        wait = SLOW_SECONDS if kind == "slow" else 0.0
        asyncio.get_running_loop().call_later(wait, self._answer, answer.pack(), addr)

    def _answer(self, data: bytes, addr: tuple[str, int]) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(data, addr)


@asynccontextmanager
async def names(folder: Path) -> AsyncIterator[Names]:
    """Run the server; resolv.conf knows no other port than 53, hence an address of its own."""
    for tool in ("linux", "root", "unshare"):
        need(tool)
    settings = folder / "resolv.conf"
    settings.write_text(f"nameserver {ADDRESS}\noptions timeout:5 attempts:2\n")
    prefix = (need("unshare"), "--mount", "sh", "-c", MOUNT, str(settings))
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Names(prefix), local_addr=(ADDRESS, 53)
    )
    try:
        yield server
    finally:
        transport.close()
