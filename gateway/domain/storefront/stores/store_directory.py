"""Finds stores by hostname, and origins that stores allow, without a query each time.

What it knows is at most a second old. The commit of a transaction that changed a store announces
it, so that the directory forgets at once what it knows of this store, and of no other.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import json

from gateway.domain.cells.cells import Cells
from gateway.domain.storefront.stores import store_origins, stores
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.values import hostnames
from outbox.clock import Clock
from outbox.database.transaction import Database, RequestBudget, patience

KEPT_SECONDS = 0.9
KEPT = 1_000
"""Hostnames, and origins, that it knows at once."""
SPARE_READS = 20
"""Reads in KEPT_SECONDS for the origins of clients beyond their rate."""

T = TypeVar("T")
ZonedStore = tuple[Record, str]
"""A store and the time zone of its owner."""


class _Entry(NamedTuple, Generic[T]):
    until: float
    """Monotonic time at which the result is too old."""
    reading: asyncio.Task[T]


class RecentReads(Generic[T]):
    """The results of the last `most` reads, each for `seconds`; a failed one has none.

    Who asks for one that is under way waits for it.
    """

    def __init__(self, clock: Clock, seconds: float, most: int) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._entries: OrderedDict[str, _Entry[T]] = OrderedDict()

    def has(self, key: str) -> bool:
        """Return whether `get` needs no new read."""
        entry = self._entries.get(key)
        return entry is not None and (
            not entry.reading.done() or entry.until > self._clock.monotonic()
        )

    def last(self, key: str) -> T | None:
        """Return the last result of a key, however old; None when there is none."""
        entry = self._entries.get(key)
        return entry.reading.result() if entry is not None and entry.reading.done() else None

    async def get(self, key: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of a key, by `read` if there is none. Raises what `read` does."""
        entry = self._entries[key] if self.has(key) else self._begun(key, read)
        # Shielded: other requests may wait for the same result.
        return await asyncio.shield(entry.reading)

    def forget(self, key: str) -> None:
        """Forget the result of a key. What is under way reaches those alone who wait for it."""
        self._entries.pop(key, None)

    def forget_those(self, concerns: Callable[[T], bool]) -> None:
        """Forget the results that a change concerns, and what is under way: it may be one."""
        for key, entry in list(self._entries.items()):
            if not entry.reading.done() or concerns(entry.reading.result()):
                del self._entries[key]

    def _begun(self, key: str, read: Callable[[], Coroutine[Any, Any, T]]) -> _Entry[T]:
        # The time starts before the read, because its result may already be outdated.
        until = self._clock.monotonic() + self._seconds
        entry = _Entry(until, asyncio.create_task(self._run(key, read), name="recent-read"))
        self._entries[key] = entry
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return entry

    async def _run(self, key: str, read: Callable[[], Coroutine[Any, Any, T]]) -> T:
        # The read of many waits for none of the places of whoever asked first, whose owner may be
        # another one: of an operation that began in another store.
        patience.set(RequestBudget(owner=key))
        try:
            return await read()
        except BaseException:
            entry = self._entries.get(key)
            if entry is not None and entry.reading is asyncio.current_task():
                del self._entries[key]
            raise


class Directory:
    """The active stores of the installation; with `proven` only at hostnames with a proof."""

    def __init__(self, db: Database, cells: Cells, *, proven: bool = False) -> None:
        self._db = db
        self.proven = proven
        self._cells = cells
        self._stores = RecentReads[ZonedStore](db.clock, KEPT_SECONDS, KEPT)
        self._origins = RecentReads[bool](db.clock, KEPT_SECONDS, KEPT)
        self._spare = (0.0, 0)

    async def find(self, hostname: str) -> ZonedStore:
        """Return the active store with this hostname or alias.

        Raises store_not_found, and misdirected when another cell has the hostname.
        """
        by_hostname = partial(stores.by_hostname, proven=self.proven)
        try:
            return await self._stores.get(hostname, partial(self._db.read, by_hostname, hostname))
        except Refusal:
            name = hostnames.normal(hostname)
            refusal = None if name is None else await self._cells.of_name("hostname", name)
            if refusal is not None:
                raise refusal from None
            raise

    async def allows(self, origin: str) -> bool:
        """Return whether an active store allows an origin, besides its own hostnames."""
        if not store_origins.may_be_one(origin):
            return False
        read = partial(self._db.read, store_origins.is_allowed, origin)
        return await self._origins.get(store_origins.name_of(origin), read)

    async def allows_at_last(self, origin: str) -> bool:
        """Return the same with few reads, for clients that could invent origins without end.

        After SPARE_READS it is what was read last, however old, and False where nothing was.
        """
        if not store_origins.may_be_one(origin):
            return False
        name = store_origins.name_of(origin)
        if self._origins.has(name) or self._has_spare_read():
            return await self.allows(origin)
        return self._origins.last(name) or False

    def committed(self, changed: Collection[str]) -> None:
        """Forget what a commit changed; see Database.on_change."""
        ids = set()
        for name in changed:
            kind, _, rest = name.partition(":")
            if kind == store_origins.CHANGED:
                self._origins.forget(name)
            elif kind == stores.CHANGED:
                ids.add(rest)
        if ids:
            self._stores.forget_those(lambda zoned: zoned[0].id in ids)

    def _has_spare_read(self) -> bool:
        now = self._db.clock.monotonic()
        until, count = self._spare
        if until <= now:
            until, count = now + KEPT_SECONDS, 0
        self._spare = until, count + 1
        return count < SPARE_READS


def is_hostname_of(store: Record, host: str) -> bool:
    """Return whether a host is the hostname or an alias of a store."""
    name = hostnames.normal(host)
    return name is not None and (name == store["hostname"] or name in json.decode(store["aliases"]))
