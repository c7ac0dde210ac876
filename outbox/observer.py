"""The engine's reports about its own work, for metrics.

Every method returns at once, raises nothing and runs on the event loop, after the commit of what it
reports: a crash can lose a count but never adds one. Seconds are floats.
"""

from collections.abc import Mapping
from typing import Literal

from outbox.errors import DatabaseFault
from outbox.states import AttemptKind, Change, End, JobKind, JobState, OutcomeName

ClaimResult = Literal["rows", "empty", "error"]
Rescue = Literal["startup", "lease", "unheld"]


class Observer:
    """The reports of the engine: each method does nothing, and a subclass overrides what it counts.

    A database holds the observer of all parts that work with it.
    """

    # From a database.

    def transaction(self, op: Literal["read", "write"], seconds: float) -> None:
        """Report the end of a unit, committed or not; `seconds` include waiting."""

    def fault(self, kind: DatabaseFault) -> None:
        """Report that the database refused or interrupted work."""

    # From whatever ends deliveries.

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        """Report a delivery's end; `latency` is event commit to 2xx, None for the other ends."""

    # From retention and marks.

    def purged(self, table: str, count: int) -> None:
        """Report that `count` rows of `table` were deleted."""

    def swept(self, table: str) -> None:
        """Report that no row of `table` is past its retention any more."""

    # From jobs.

    def job_made(self, kind: JobKind, count: int) -> None:
        """Report replays of a job."""

    def job_ended(self, kind: JobKind, state: JobState) -> None:
        """Report the end of a job."""

    # From the drain.

    def tick(self) -> None:
        """Report one turn of the drain's loop: a heartbeat."""

    def fanned_out(self, events: Mapping[str, int], deliveries: Mapping[str, int]) -> None:
        """Report events fanned out per name and the number of their deliveries."""

    def left_out(self, events: Mapping[str, int]) -> None:
        """Report deliveries, per event name, that the conditions of webhooks left out."""

    def claimed(self, result: ClaimResult, seconds: float) -> None:
        """Report a claim of due deliveries."""

    def started(self, kind: AttemptKind, lag: float, limited: bool) -> None:
        """Report the start of a request, `lag` after its delivery was due and could be sent.

        `limited`: the webhook fails or responds slowly, and so gets one request at a time.
        """

    def slots(self, total: int, busy: int) -> None:
        """Report the limit of concurrent sends and the number under way."""

    def drain_ended(self) -> None:
        """Report that this process sends nothing more, unless a drain starts again."""

    def attempt(
        self, webhook_id: str, host: str, kind: AttemptKind, outcome: OutcomeName, seconds: float,
        at: float,
    ) -> None:  # fmt: skip
        """Report an attempt recorded `at` this wall time; `seconds` is that of its request."""

    def unreadable(self, webhook_id: str) -> None:
        """Report a delivery put back because its webhook's secret cannot be decrypted now."""

    def rescued(self, reason: Rescue, count: int) -> None:
        """Report deliveries taken back: of an earlier process, a dead node or no sender."""

    def fenced(self) -> None:
        """Report a result that was not recorded because its claim was lost."""

    def deferred(self, count: int) -> None:
        """Report results that were put off because another transaction had their lanes locked."""

    def cut(self) -> None:
        """Report a slow send that was cut because too many were open."""

    def restarted(self) -> None:
        """Report an internal error in a turn of the drain; the drain continues."""

    def clock_skew(self, seconds: float) -> None:
        """Report how far this node's clock is ahead of the database server's."""

    def window(self, webhook_id: str, width: int) -> None:
        """Report a change of a webhook's window of concurrent sends."""

    def connection(self, reused: bool) -> None:
        """Report whether a request used a pooled connection or a new one."""

    def transition(self, to: Change, reason: str) -> None:
        """Report that attempts opened or closed a webhook's circuit, or disabled a webhook."""

    def truncated(self) -> None:
        """Report a response longer than the stored part."""

    def redirect_refused(self) -> None:
        """Report a redirect response, which is never followed."""
