"""Runs the searches of visitors: in places of their own, and paid by the visitor's address.

A search pays for the rows that it looked at, after it ran, so its account may be overdrawn; then
the address waits until the account is balanced. It pays under its address alone, never under the
store's owner, whose own searches have the other places.
"""

from collections.abc import Awaitable, Callable
from typing import Concatenate

from gateway.domain.accounts.counter_store import NewCounterStore, OwnCounters
from gateway.domain.accounts.networks import WORTHS, networks_of, share_of
from gateway.records.errors import rate_limited
from outbox.database.fair_limit import Crowded, FairSemaphore
from outbox.database.transaction import Database, P, T, Tx

HOLDER = "visitors"
"""All visitors together are one holder of scans, so that owners have the other places."""
AT_ONCE = 2
WAITING = 32
"""Searches of one address that may wait: those of one document, which has at most 30."""
LEAST = 1_000
"""The price of a search that looks at fewer rows."""
ABANDONED_PER_SECOND = 200_000
"""The rows for each second of a search that does not tell them: as many as a slow machine reads."""


class SearchBudgets:
    """The searches that visitors may do; `per_minute` rows of one address, 0 for no limit."""

    def __init__(self, db: Database, per_minute: int, keep: NewCounterStore = OwnCounters) -> None:
        self._db = db
        self._per_minute = per_minute
        self._levels = {worth: keep(f"searched {worth}") for worth in WORTHS}
        self._places = FairSemaphore(AT_ONCE, each=1, waiting=WAITING)

    async def run(
        self,
        address: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[tuple[T, int]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a unit that returns its result and the rows that it looked at; return the result.

        Raises rate_limited when the address has spent its rows or has too many searches waiting.
        """
        self._must_be_solvent(address)
        try:
            async with self._places.place(share_of(address)):
                # Those ahead in the line may have spent the rest.
                self._must_be_solvent(address)
                result, rows = await self._measured(address, unit, *args, **kwargs)
        except Crowded:
            text = "Too many searches of this address are waiting; send fewer at once."
            raise rate_limited(text, 1) from None
        self._pay(address, max(rows, LEAST))
        return result

    async def _measured(
        self,
        address: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[tuple[T, int]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> tuple[T, int]:
        """Run the unit. One that is abandoned, such as at the time limit, pays for its time."""
        began = self._db.clock.monotonic()
        try:
            return await self._db.scan(HOLDER, unit, *args, **kwargs)
        except BaseException:
            seconds = self._db.clock.monotonic() - began
            self._pay(address, max(round(seconds * ABANDONED_PER_SECOND), LEAST))
            raise

    def _must_be_solvent(self, address: str) -> None:
        if not self._per_minute:
            return
        for network, worth in networks_of(address):
            level = self._level(network, worth)
            if level <= 0:
                wait = (1 - level) / (self._per_minute * worth / 60)
                raise rate_limited(
                    "The searches of this address have looked at too many products; try again "
                    "later.",
                    wait,
                )

    def _pay(self, address: str, rows: int) -> None:
        if not self._per_minute:
            return
        now = self._db.clock.monotonic()
        for network, worth in networks_of(address):
            self._levels[worth].put(network, self._level(network, worth) - rows, now)

    def _level(self, network: str, worth: int) -> float:
        """Return the rows that a network has left; negative when it is overdrawn."""
        now, most = self._db.clock.monotonic(), float(self._per_minute * worth)
        level, then = self._levels[worth].get(network) or (most, now)
        return min(most, level + (now - then) * most / 60)
