"""What a database offers: units of work run by `read` and `write`, and what a unit may do.

A unit is an async function `unit(tx, …)` that awaits nothing but `tx`. It is handed over as a
function with its arguments, never as a started coroutine, so that it can run again; so it must
have no effect outside `tx`. It runs in a copy of its caller's context variables.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

from outbox.clock import Clock
from outbox.database.leadership import Leadership, Pace
from outbox.database.places import Places
from outbox.ids import Ids
from outbox.observer import DatabaseObserver

P = ParamSpec("P")
T = TypeVar("T")
Engine = Literal["sqlite", "postgres"]
LetGo = Callable[[], None]
"""Ends what it was got from."""
Purpose = Literal["drain", "lease", "migration"]
SynchronousCommit = Literal["on", "remote_apply", "remote_write", "local"]
PACE = Pace()
DUTIES = ""
"""Who scans for the installation itself, in `Database.scan`."""
SCANS_WAITING = 8
SCANS_EACH = 2
"""Scans of one owner: how many may wait, and how many run at once where there is room for more."""


@dataclass(slots=True)
class Patience:
    """How long somebody who waits for several units has waited for the database, in seconds."""

    spent: float = 0.0


patience: ContextVar[Patience | None] = ContextVar("patience", default=None)
"""Of the request at hand: on PostgreSQL all its units together are answered within ten seconds."""


def scan_places(count: int) -> Places:
    """Turns of `count` scans at once; where there are two or more, one owner leaves one free."""
    return Places(count, each=min(SCANS_EACH, max(1, count - 1)), waiting=SCANS_WAITING)


class Row(Protocol):
    """One row: values by column name or position."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def keys(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """An INSERT whose result no unit needs; `found` asks whether its row of a first value exists.

    The first value is new with every row, so it also tells whether a COMMIT took place.
    """

    statement: str
    found: str


class Tx(Protocol):
    """One transaction. All statements use `$1` placeholders and the same text on both engines.

    `/*sqlite … */` and `/*postgres … */` inside a statement are active on that engine alone;
    `due_now()` is the due clock (microseconds, never goes back).
    """

    engine: Engine
    now: int
    """Wall time in microseconds UTC, the same for the whole transaction."""
    wake: bool
    """Set by a unit that makes work for the drain (a new event, replay, activate)."""
    changed: set[str]
    """Ids of the webhooks whose row the unit changed; `on_change` tells them after COMMIT."""

    def new_id(self) -> str: ...

    async def one(self, sql: str, *args: Any) -> Row | None:
        """The first row, or None."""

    async def all(self, sql: str, *args: Any) -> list[Row]:
        """All rows."""

    async def run(self, sql: str, *args: Any) -> int:
        """Run it; the number of rows it changed."""

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Run it once per row of arguments; what its RETURNING gave, in order."""

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        """Write `row` just before COMMIT; the unit's own statements do not see it."""


class Database(Protocol):
    """An open database."""

    engine: Engine
    clock: Clock
    ids: Ids
    observer: DatabaseObserver
    """Told how transactions fare; metrics hang here."""

    def apart(self, purpose: Purpose) -> Database:
        """The same database on connections of its own, which a full pool cannot hold up.

        "migration" has no limits of time. On SQLite it is the database itself.
        """

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `unit` on a snapshot. Raises DatabaseUnavailable, or what the unit raises."""

    async def scan(
        self,
        owner: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As `read`, for what looks through much (searches, reports): few at once, beside reads.

        `owner` is whose turn it takes (DUTIES for the engine's own). A caller that is cancelled
        ends it, while it waits and while it runs. Raises Crowded when the owner has
        SCANS_WAITING of them waiting.
        """

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `unit` in a transaction; returns after COMMIT.

        Raises DatabaseUnavailable (nothing was committed), OutcomeUnknown, or what the unit
        raises (its work is rolled back, and only its own).
        """

    def listen(self, callback: Callable[[], None], node: Callable[[], str] | None = None) -> LetGo:
        """Call `callback` on the event loop when there is work for this node's drain.

        A commit that made work wakes one of the live nodes, in turn; `node` gives the id of this
        one, which may change. Without it, `callback` hears of all commits.
        """

    def announce(self) -> None:
        """Work is left: wake one other node. May be called often. Does nothing on SQLite."""

    def on_change(self, callback: Callable[[Collection[str]], None]) -> LetGo:
        """Call `callback` on the event loop with the webhooks that a commit changed.

        For a commit of this process it runs before `write` returns; other nodes hear of it within
        a second.
        """

    def leadership(self, pace: Pace = PACE) -> Leadership:
        """A new candidate for leader of all nodes that share this database."""

    async def close(self) -> None: ...
