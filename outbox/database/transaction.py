"""The interface of a database: `read` and `write` run units of work on a transaction.

A unit is an async function `unit(tx, …)` that awaits only `tx`. The caller passes the function and
its arguments, never a started coroutine, so that the unit can run again; so it must have no effect
outside `tx`. It runs in a copy of its caller's context variables. It is one module because each
engine keeps the whole of it.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar

from outbox.clock import Clock
from outbox.database.claims import Claim, Reserve
from outbox.database.leadership import Leadership, Pace
from outbox.database.pacing import Meter
from outbox.ids import Ids
from outbox.observer import Observer

P = ParamSpec("P")
T = TypeVar("T")
Engine = Literal["sqlite", "postgres"]
Values = Sequence[Any]
"""The values of one row in the order of its columns."""
Wake = Callable[[], None]
Name = Callable[[], str]
Idle = Callable[[], bool]
Unsubscribe = Callable[[], None]
"""Ends the registration that returned it."""
Home = tuple[str, str]
"""The name and the address of the installation that an owner has moved to."""
Purpose = Literal["drain", "lease", "migration"]
SynchronousCommit = Literal["on", "remote_apply", "remote_write", "local"]
PACE = Pace()
DUTIES = ""
"""The owner of the installation's own scans, for `Database.scan`."""


@dataclass(slots=True)
class RequestBudget:
    """What the units of one request share.

    `spent`: the seconds that it has waited for the database. `owner`: whose connections its writes
    count as, an account's id or, before that is known, the client's address.
    """

    waited: float = 0.0
    owner: str = DUTIES


patience: ContextVar[RequestBudget | None] = ContextVar("patience", default=None)
"""The patience of the current request: on PostgreSQL its units end within ten seconds together."""


def belongs_to(owner: str) -> None:
    """Note whose request the current one is."""
    current = patience.get()
    if current is not None:
        current.owner = owner


def asker() -> str:
    """Return whose request the current one is: an account or, while it is unknown, an address."""
    current = patience.get()
    return DUTIES if current is None else current.owner


@dataclass(slots=True)
class Commits:
    """Whether a unit of one request is committed, so that a later fault does not deny it."""

    any: bool = False


commits: ContextVar[Commits | None] = ContextVar("commits", default=None)
"""The commits of the current request, or of its part that is refused as a whole."""


def note_commit() -> None:
    """Note that a unit of the current request is committed; a driver calls it."""
    noted = commits.get()
    if noted is not None:
        noted.any = True


Unit = TypeVar("Unit", bound=Callable[..., Awaitable[Any]])


def brief(unit: Unit) -> Unit:
    """Mark a write unit as brief: a bounded number of statements on a bounded number of rows.

    SQLite runs such a unit on the event loop; all others run on a thread.
    """
    vars(unit)["brief"] = True
    return unit


def is_brief(unit: Callable[..., Any]) -> bool:
    """Return whether `unit`, or the function of a partial one, is marked as brief."""
    while isinstance(unit, partial):
        unit = unit.func
    return getattr(unit, "brief", False)


def alone(unit: Unit) -> Unit:
    """Mark a write unit as a single statement, the only thing that it awaits.

    PostgreSQL runs such a statement without BEGIN and COMMIT, each of which is a round trip.
    """
    vars(unit)["alone"] = True
    return unit


class Row(Protocol):
    """One row: values by column name or position."""

    def __getitem__(self, key: Any, /) -> Any: ...
    def keys(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Insert:
    """An INSERT whose result no unit needs.

    `conflict` is an ON CONFLICT clause or empty. With `sums`, rows that differ only in their last
    value are written as one row with its sum. `found` queries whether the row of a given first
    value exists: this value is unique per row, so it also tells whether a COMMIT succeeded. With
    `refers`, the rows have foreign keys to rows of other INSERTs, so they are written after these.
    """

    table: str
    columns: tuple[str, ...]
    conflict: str = ""
    sums: bool = False
    found: str = ""
    referred: bool = True
    refers: bool = False


class Tx(Protocol):
    """One transaction. All statements use `$1` placeholders and the same text on both engines.

    `/*sqlite … */` and `/*postgres … */` inside a statement apply to that engine alone; `due_now()`
    is the due clock (microseconds, never goes back).
    """

    engine: Engine
    now: int
    """Wall time in microseconds UTC, the same for the whole transaction."""
    wake: bool
    """Set by a unit that makes work for the drain (a new event, a replay, an activation)."""
    changed: set[str]
    """Ids of the webhooks whose rows the unit changed, and names of other things that it changed
    and that processes cache; `on_change` receives them after COMMIT."""
    claims: list[Claim]
    """Names for `Database.reserve`."""

    def new_id(self) -> str:
        """Return a new id, greater than those before in the transaction."""

    async def one(self, sql: str, *args: Any) -> Row | None:
        """Return the first row, or None."""

    async def all(self, sql: str, *args: Any) -> list[Row]:
        """Return all rows."""

    async def run(self, sql: str, *args: Any) -> int:
        """Run the statement; return the number of changed rows."""

    async def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[Row]:
        """Run the statement once per row of arguments; return its RETURNING rows in order."""

    def later(self, insert: Insert, row: Sequence[Any]) -> None:
        """Write `row` before COMMIT, and before the unit's next statement that may see it."""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A table from which personal data was deleted; `indexed`: its indexes hold some, too."""

    table: str
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """The most that one unit should write: rows, and bytes of large values."""

    rows: int
    size: int


class Database(Protocol):
    """An open database."""

    engine: Engine
    shared: bool
    """Whether other nodes may work with it at the same time."""
    one_writer: bool
    """Whether units wait for each other, not for locks, and those that wait share one COMMIT."""
    batch: Batch
    clock: Clock
    ids: Ids
    observer: Observer
    """Receives reports of the database and what works with it, for metrics."""
    meter: Meter
    """Measures what jobs cost the writes of others in this process."""
    closed_owners: Mapping[str, Home | None]
    unreadable_owners: Mapping[str, Home | None]
    """Owners whose requests write, and read, nothing here, and where they are if that is known:
    see outbox.queue.upkeep.owner_moves."""
    moves_seen: int | None
    """What `moves_epoch` was when `closed_owners` was read; None: nobody
    reads it. Not used on SQLite."""
    reserve: Reserve | None
    """None: this database alone knows who has a name. Never used on SQLite."""

    def apart(self, purpose: Purpose) -> Database:
        """Return the same database on its own connections, which a full pool cannot block.

        "migration" has no timeouts. On SQLite this returns the database itself.
        """

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `unit` on a snapshot. Raise DatabaseUnavailable or the error of the unit."""

    async def scan(
        self,
        owner: str,
        unit: Callable[Concatenate[Tx, P], Awaitable[T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run `unit` like `read`, for long reads (searches, reports), few of them at once.

        The scan takes the turn of `owner` (DUTIES for the engine's own). Cancelling the caller ends
        it, while it waits and while it runs. Raise Crowded when `owner` has SCANS_WAITING scans
        waiting.
        """

    def stream(self, owner: str, sql: str, *args: Any) -> AsyncGenerator[Sequence[Values], None]:
        """Yield the rows of a query in batches of bounded size, on a connection of its own.

        The caller reads as slowly as it likes, up to STREAM_SECONDS. The stream takes the turn of
        `owner`, apart from scans. Raise Crowded or DatabaseUnavailable.
        """

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run `unit` in a transaction; return after COMMIT.

        Raise DatabaseUnavailable (nothing is committed), OutcomeUnknown, or the error of the unit
        (only its own work is rolled back).
        """

    def listen(
        self, callback: Wake, node: Name | None = None, idle: Idle | None = None
    ) -> Unsubscribe:
        """Call `callback` on the event loop when there is work for this node's drain.

        A commit that makes work wakes one live node: this one, unless it is not `idle` and another
        takes it; `node` returns its id at the time. With one writer it may precede COMMIT. Without
        `node`, it runs after all commits.
        """

    def announce(self) -> None:
        """Wake one other node because work is left. May be called often. Does nothing on SQLite."""

    def on_change(self, callback: Callable[[Collection[str]], None]) -> Unsubscribe:
        """Call `callback` on the event loop with what a commit changed; see `Tx.changed`.

        For a commit of this process it runs before `write` returns, on others within a second.
        """

    def on_move(self, callback: Callable[[], None]) -> Unsubscribe:
        """Call `callback` when an owner may have moved; never on SQLite."""

    @property
    def moves_epoch(self) -> int:
        """Which connection hears of moves, by its number; 0 while none does, and on SQLite."""

    def leadership(self, pace: Pace = PACE) -> Leadership:
        """Return a new candidate for leader of all nodes that share this database."""

    async def scrub(self, tables: Iterable[Scrubbed]) -> bool:
        """Remove from the files what committed units have deleted; return False to try again later.

        SQLite overwrites what it deletes, so its log is emptied into the file; while a long read
        needs the log, that fails. PostgreSQL vacuums `tables`: no page shows the rows any more.
        """

    def census(self) -> Mapping[str, int]:
        """Return the connections for requests by state, none on SQLite. A thread may call this."""

    async def close(self) -> None: ...
