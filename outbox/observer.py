"""What the engine tells about its own work, for whoever counts it.

Every method returns at once, raises nothing and is called on the event loop, after the commit
that makes it true: a crash can lose a count, never invent one. Seconds are floats.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from outbox.errors import DatabaseFault
from outbox.states import AttemptKind, End, OutcomeName

ClaimResult = Literal["rows", "empty", "error"]
Rescue = Literal["startup", "lease", "unheld"]


class DatabaseObserver(Protocol):
    """What a database tells of its transactions."""

    def transaction(self, op: Literal["read", "write"], seconds: float) -> None:
        """A unit ended, committed or not: `seconds` from its call to its answer, waits included."""

    def fault(self, kind: DatabaseFault) -> None:
        """The database refused or broke off work."""


class Observer(DatabaseObserver, Protocol):
    """What the drain tells, beside what a database tells of its transactions."""

    def tick(self) -> None:
        """The drain's loop went round: the dead-man's sign."""

    def fanned_out(self, events: Mapping[str, int], deliveries: Mapping[str, int]) -> None:
        """Fan-out met so many events of each name, and made so many deliveries of them."""

    def claimed(self, result: ClaimResult, seconds: float) -> None:
        """The claim asked the database for due deliveries."""

    def started(self, kind: AttemptKind, lag: float) -> None:
        """A request is leaving, `lag` after its delivery was due."""

    def slots(self, total: int, busy: int) -> None:
        """Sends allowed at once, and sends under way."""

    def attempt(
        self, webhook_id: str, host: str, kind: AttemptKind, outcome: OutcomeName, seconds: float
    ) -> None:
        """An attempt and its row were settled; `seconds` is the request's own time."""

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        """A delivery ended; `latency` is event commit to 2xx, None for the other ends."""

    def rescued(self, reason: Rescue, count: int) -> None:
        """Deliveries taken back: from an earlier process, a dead node, or held by nobody."""

    def fenced(self) -> None:
        """A settle had lost its claim, and changed nothing."""

    def deferred(self, count: int) -> None:
        """So many settles were put off, since somebody held their lanes."""

    def cut(self) -> None:
        """A slow send was ended, since too many were open."""

    def restarted(self) -> None:
        """A fault of ours ended a turn of the drain; it goes on with what it holds."""

    def clock_skew(self, seconds: float) -> None:
        """How far this node's clock is ahead of the database server's."""

    def window(self, webhook_id: str, width: int) -> None:
        """A webhook's window of concurrent sends changed."""

    def connection(self, reused: bool) -> None:
        """A request got a pooled connection, or a new one."""

    def truncated(self) -> None:
        """A receiver's answer was longer than what is kept."""

    def redirect_refused(self) -> None:
        """A receiver answered with a redirect, which is never followed."""


class Unwatched:
    """An Observer that nobody reads: the engine without a metrics page."""

    def transaction(self, op: Literal["read", "write"], seconds: float) -> None: ...
    def fault(self, kind: DatabaseFault) -> None: ...
    def tick(self) -> None: ...
    def fanned_out(self, events: Mapping[str, int], deliveries: Mapping[str, int]) -> None: ...
    def claimed(self, result: ClaimResult, seconds: float) -> None: ...
    def started(self, kind: AttemptKind, lag: float) -> None: ...
    def slots(self, total: int, busy: int) -> None: ...
    def attempt(
        self, webhook_id: str, host: str, kind: AttemptKind, outcome: OutcomeName, seconds: float
    ) -> None: ...
    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None: ...
    def rescued(self, reason: Rescue, count: int) -> None: ...
    def fenced(self) -> None: ...
    def deferred(self, count: int) -> None: ...
    def cut(self) -> None: ...
    def restarted(self) -> None: ...
    def clock_skew(self, seconds: float) -> None: ...
    def window(self, webhook_id: str, width: int) -> None: ...
    def connection(self, reused: bool) -> None: ...
    def truncated(self) -> None: ...
    def redirect_refused(self) -> None: ...
