"""Timeouts and planner settings on PostgreSQL, by the purpose of a connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outbox.database.index_plans import WHOLE_TABLES

BODY_SECONDS = 8.0
COMMIT_SECONDS = 9.0
FATE_SECONDS = 9.4
ACQUIRE_SECONDS = 6.0
UNHURRIED_OUTCOME_SECONDS = 8.0
SCAN_SECONDS = 6.0
"""Limit for one statement of a scan, in place of its connection's limit."""
TRANSACTION_TIMEOUT_FROM = 17


@dataclass(frozen=True, slots=True)
class Times:
    """Deadlines of a unit, of its COMMIT and of the look-up of its outcome.

    On the event loop's clock; None: no deadline.
    """

    body: float | None
    commit: float | None
    outcome: float | None

    def late(self, now: float) -> bool:
        """Return whether the time of the unit's statements is over at `now`."""
        return self.body is not None and now >= self.body

    def acquire(self, now: float) -> float | None:
        """Return the seconds to wait for a free connection."""
        return None if self.body is None else max(0.0, min(ACQUIRE_SECONDS, self.body - now))

    def outcome_from(self, now: float) -> float:
        """Return the deadline for outcome look-ups; a unit without a limit also gets one."""
        return now + UNHURRIED_OUTCOME_SECONDS if self.outcome is None else self.outcome


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that the server allows for a lock wait, a statement and an idle transaction.

    0: no limit. `transaction` limits a whole transaction; only this limit detects a peer that
    disappears in the middle of a message (PostgreSQL 17). `bounded` units end within ten seconds,
    whatever the server does. `by_index`: each statement reads few rows, so plans use indexes.
    """

    lock: float
    statement: float
    idle: float
    transaction: float
    bounded: bool = True
    by_index: bool = False

    def settings(self, version: int) -> Mapping[str, str]:
        """Return the settings with their names on a server of this major version."""
        settings = {
            "lock_timeout": str(int(self.lock * 1000)),
            "statement_timeout": str(int(self.statement * 1000)),
            # A node that freezes inside a transaction must not block the others with its locks.
            "idle_in_transaction_session_timeout": str(int(self.idle * 1000)),
        }
        if self.by_index and version:
            # Sorts stay: to avoid one, a plan would read a whole table in the order of its key.
            # Not at version 0, as poolers refuse parameters of a connection that they do not know.
            settings |= dict.fromkeys(WHOLE_TABLES, "off")
        if version >= TRANSACTION_TIMEOUT_FROM:
            settings["transaction_timeout"] = str(int(self.transaction * 1000))
        return settings

    def times(self, now: float) -> Times:
        """Return the deadlines of a unit that starts now."""
        if not self.bounded:
            return Times(None, None, None)
        return Times(now + BODY_SECONDS, now + COMMIT_SECONDS, now + FATE_SECONDS)


REQUESTS = Limits(lock=5.0, statement=8.0, idle=2.0, transaction=9.0)
GROUP = Limits(lock=0.25, statement=8.0, idle=2.0, transaction=9.0)
"""A row that another transaction has locked must not hold up units that do not need it."""
DRAIN = Limits(lock=1.0, statement=8.0, idle=2.0, transaction=4.0, by_index=True)
LEASE = Limits(lock=1.0, statement=8.0, idle=2.0, transaction=4.0)
MIGRATION = Limits(lock=0.0, statement=0.0, idle=0.0, transaction=0.0, bounded=False)
