"""No machine is too slow for a test: what ends a unit on PostgreSQL waits until a hang is sure."""

from collections.abc import Iterator
from contextlib import contextmanager

from outbox.database.postgres import limits
from outbox.database.postgres.limits import Limits
from tests.support.waiting import HANG_SECONDS

_DEADLINES = ("BODY_SECONDS", "COMMIT_SECONDS", "FATE_SECONDS", "ACQUIRE_SECONDS")
_FIELDS = ("statement", "idle", "transaction")
_Change = tuple[object, str, float]


def _long() -> list[_Change]:
    purposes = (limits.REQUESTS, limits.DRAIN, limits.LEASE)
    changes: list[_Change] = [(limits, name, HANG_SECONDS) for name in _DEADLINES]
    changes += [(allowed, name, HANG_SECONDS) for allowed in purposes for name in _FIELDS]
    return [*changes, (limits.REQUESTS, "lock", HANG_SECONDS)]


def _set(changes: list[_Change]) -> None:
    for of, name, value in changes:
        # An instance of Limits is frozen, and handles already refer to it.
        (object.__setattr__ if isinstance(of, Limits) else setattr)(of, name, value)


_SERVED = [(of, name, getattr(of, name)) for of, name, _ in _long()]


def lengthen() -> None:
    """Make the limits long, for all tests of this process."""
    _set(_long())


@contextmanager
def served_limits() -> Iterator[None]:
    """Have the limits of an installation meanwhile."""
    _set(_SERVED)
    yield
    lengthen()
