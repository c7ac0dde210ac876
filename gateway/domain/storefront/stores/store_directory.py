"""Finds stores by hostname, and the origins that may call any of them, without a query each time.

An entry is at most a second old. The commit of a transaction that changed a store announces it, so
that the directory forgets its entries at once.
"""

from collections import OrderedDict
from collections.abc import Collection
from functools import partial

from msgspec import json

from gateway.domain.cells.cells import Cells
from gateway.domain.storefront.stores import stores
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.values import hostnames
from outbox.database.transaction import Database, Tx

KEPT_SECONDS = 0.9
KEPT_STORES = 1_000

ZonedStore = tuple[Record, str]
"""A store and the time zone of its owner."""


class Directory:
    """The active stores of the installation; with `proven` only at hostnames with a proof."""

    def __init__(self, db: Database, cells: Cells, *, proven: bool = False) -> None:
        self._db = db
        self.proven = proven
        self._cells = cells
        self._stores: OrderedDict[str, tuple[float, ZonedStore]] = OrderedDict()
        self._origins: dict[str, tuple[float, frozenset[str]]] = {}

    async def find(self, hostname: str) -> ZonedStore:
        """Return the active store with this hostname or alias.

        Raises store_not_found, and misdirected when another cell has the hostname.
        """
        now = self._db.clock.monotonic()
        cached = self._stores
        entry = cached.get(hostname)
        if entry is not None and entry[0] > now:
            return entry[1]
        try:
            zoned = await self._db.read(partial(stores.by_hostname, proven=self.proven), hostname)
        except Refusal:
            name = hostnames.normal(hostname)
            refusal = None if name is None else await self._cells.of_name("hostname", name)
            if refusal is not None:
                raise refusal from None
            raise
        # The time starts before the query, because its result may already be outdated. A query
        # during `forget` stores its result in the mapping that nobody reads any more.
        cached[hostname] = (now + KEPT_SECONDS, zoned)
        cached.move_to_end(hostname)
        if len(cached) > KEPT_STORES:
            cached.popitem(last=False)
        return zoned

    async def origins(self) -> frozenset[str]:
        """Return the origins that the active stores allow, besides their own hostnames."""
        now = self._db.clock.monotonic()
        cached = self._origins
        entry = cached.get("")
        if entry is not None and entry[0] > now:
            return entry[1]
        allowed = await self._db.read(_allowed)
        cached[""] = (now + KEPT_SECONDS, allowed)
        return allowed

    def committed(self, changed: Collection[str]) -> None:
        """Forget all entries if a commit changed a store; see Database.on_change."""
        if stores.CHANGED in changed:
            self.forget()

    def forget(self) -> None:
        """Forget all entries."""
        self._stores = OrderedDict()
        self._origins = {}


def origins_of(store: Record) -> frozenset[str]:
    """Return the origins that a store allows, besides its own hostnames."""
    return frozenset(json.decode(store["allowed_origins"]))


def is_hostname_of(store: Record, host: str) -> bool:
    """Return whether a host is the hostname or an alias of a store."""
    name = hostnames.normal(host)
    return name is not None and (name == store["hostname"] or name in json.decode(store["aliases"]))


async def _allowed(tx: Tx) -> frozenset[str]:
    rows = await tx.all(
        "select s.allowed_origins from stores s join users u on u.id = s.owner_id"
        " where s.active and u.disabled_at is null and s.allowed_origins <> '[]'"
    )
    return frozenset(origin for row in rows for origin in json.decode(row["allowed_origins"]))
