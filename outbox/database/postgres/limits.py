"""How long things may take on PostgreSQL, by what a connection is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

BODY_SECONDS = 8.0
COMMIT_SECONDS = 9.0
FATE_SECONDS = 9.4
ACQUIRE_SECONDS = 6.0
UNHURRIED_FATE_SECONDS = 8.0
SCAN_SECONDS = 6.0
"""For one statement of a scan, in place of its connection's limit."""
TRANSACTION_TIMEOUT_FROM = 17


@dataclass(frozen=True, slots=True)
class Times:
    """Until when (by the event loop's clock) a unit may run, its COMMIT, the question of its fate.

    None: for ever.
    """

    body: float | None
    commit: float | None
    fate: float | None

    def acquire(self, now: float) -> float | None:
        """Seconds to wait for a free connection."""
        return None if self.body is None else max(0.0, min(ACQUIRE_SECONDS, self.body - now))

    def fate_from(self, now: float) -> float:
        """The end of all questions; a unit without a limit asks for a while, too."""
        return now + UNHURRIED_FATE_SECONDS if self.fate is None else self.fate


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that the server lets a statement wait for a lock, run, and a transaction stand idle.

    0: for ever. `transaction` ends all of it, and that alone finds a peer that has gone in the
    middle of a message: PostgreSQL 17 has it. `bounded` units are answered within ten seconds,
    whatever the server does.
    """

    lock: float
    statement: float
    idle: float
    transaction: float
    bounded: bool = True

    def settings(self, version: int) -> Mapping[str, str]:
        """The names for them on a server of this major version."""
        found = {
            "lock_timeout": str(int(self.lock * 1000)),
            "statement_timeout": str(int(self.statement * 1000)),
            # A node that froze in mid-transaction must not hold up the others by its locks.
            "idle_in_transaction_session_timeout": str(int(self.idle * 1000)),
        }
        if version >= TRANSACTION_TIMEOUT_FROM:
            found["transaction_timeout"] = str(int(self.transaction * 1000))
        return found

    def times(self, now: float) -> Times:
        """The ends for a unit that is called now."""
        if not self.bounded:
            return Times(None, None, None)
        return Times(now + BODY_SECONDS, now + COMMIT_SECONDS, now + FATE_SECONDS)


REQUESTS = Limits(lock=5.0, statement=8.0, idle=2.0, transaction=9.0)
DRAIN = Limits(lock=1.0, statement=8.0, idle=2.0, transaction=4.0)
LEASE = Limits(lock=1.0, statement=8.0, idle=2.0, transaction=4.0)
MIGRATION = Limits(lock=0.0, statement=0.0, idle=0.0, transaction=0.0, bounded=False)
