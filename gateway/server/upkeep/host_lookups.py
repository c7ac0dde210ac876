"""Looks for the TXT records that prove hostnames, some at once and beside all other work."""

import asyncio
from collections.abc import Callable, Sequence

from dns.asyncresolver import Resolver
from dns.exception import DNSException
from dns.resolver import NXDOMAIN, NoAnswer

from gateway.domain.storefront.stores import host_proofs
from outbox.database.transaction import Database

SECONDS = 5.0
"""The longest time of a look-up, with all its tries."""


class HostLookups:
    """The duty that proves hostnames, by the machine's name servers or by those that are named."""

    def __init__(self, db: Database, servers: Sequence[str] = ()) -> None:
        self._db = db
        self._resolver: Callable[[], Resolver] = lambda: _resolver(servers)

    async def run_once(self) -> None:
        """Look for what is due."""
        while names := await self._db.read(host_proofs.due):
            resolver = self._resolver()
            faults = await asyncio.gather(
                *(fault_of(resolver, hostname, owner_id) for hostname, owner_id in names)
            )
            hostnames = [hostname for hostname, _ in names]
            await self._db.write(host_proofs.note, list(zip(hostnames, faults, strict=True)))
            if len(names) < host_proofs.AT_ONCE:
                return


async def fault_of(resolver: Resolver, hostname: str, owner_id: str) -> str | None:
    """Return what is wrong with the record of a hostname, None for a proof."""
    try:
        # With a final dot no search domain of the machine is tried.
        answer = await resolver.resolve(
            f"{host_proofs.record_of(hostname)}.", "TXT", lifetime=SECONDS, search=False
        )
    except (NXDOMAIN, NoAnswer):
        return host_proofs.MISSING
    except (DNSException, OSError, ValueError):
        return host_proofs.ERROR
    wanted = host_proofs.value_of(owner_id).encode()
    return None if any(b"".join(one.strings) == wanted for one in answer) else host_proofs.MISSING


def _resolver(servers: Sequence[str]) -> Resolver:
    resolver = Resolver(configure=not servers)
    if servers:
        parts = [server.rpartition(":") for server in servers]
        resolver.nameservers = [host.strip("[]") for host, _, _ in parts]
        resolver.nameserver_ports = {host.strip("[]"): int(port) for host, _, port in parts}
    resolver.cache = None
    return resolver
