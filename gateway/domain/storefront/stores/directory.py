"""Finds stores by hostname, and the origins that may call any of them, without a query each time.

An entry is at most a second old; `forget` makes a change on this node visible at once.
"""

from collections import OrderedDict

from msgspec import json

from gateway.domain.storefront.stores import stores
from gateway.records.record import Record
from gateway.records.resource import Resource
from gateway.records.values import hostnames
from outbox.database.transaction import Database, Tx

KEPT_SECONDS = 0.9
KEPT_STORES = 1_000

Found = tuple[Record, str]
"""A store and the time zone of its owner."""


class Directory:
    """The active stores of the installation."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._stores: OrderedDict[str, tuple[float, Found]] = OrderedDict()
        self._origins: dict[str, tuple[float, frozenset[str]]] = {}

    async def find(self, hostname: str) -> Found:
        """Return the active store with this hostname or alias. Raises store_not_found."""
        now = self._db.clock.monotonic()
        known = self._stores
        entry = known.get(hostname)
        if entry is not None and entry[0] > now:
            return entry[1]
        found = await self._db.read(stores.by_hostname, hostname)
        # The time starts before the query, because its result may already be outdated. A query
        # during `forget` stores its result in the mapping that nobody reads any more.
        known[hostname] = (now + KEPT_SECONDS, found)
        known.move_to_end(hostname)
        if len(known) > KEPT_STORES:
            known.popitem(last=False)
        return found

    async def origins(self) -> frozenset[str]:
        """Return the origins that the active stores allow, besides their own hostnames."""
        now = self._db.clock.monotonic()
        known = self._origins
        entry = known.get("")
        if entry is not None and entry[0] > now:
            return entry[1]
        found = await self._db.read(_allowed)
        known[""] = (now + KEPT_SECONDS, found)
        return found

    def changed(self, resource: Resource) -> None:
        """Forget everything if a record of `resource`, which this node changed, can be a store."""
        if resource is stores.STORES:
            self.forget()

    def forget(self) -> None:
        """Forget everything, after a change of a store on this node."""
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
