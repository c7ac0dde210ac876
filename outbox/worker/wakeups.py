"""What a drain remembers of reasons to look for work, and when time alone is a reason."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

POLL_SECONDS = 1.0
COLLECT_SECONDS = 0.01
"""While events follow one another as closely, results wait up to this time for the next one."""
DENSE_SECONDS = 0.0025
"""When events follow one another more closely on average, one turn takes several of them."""
SPACING_SECONDS = 0.004
"""Between the beginnings of such turns."""


@dataclass(slots=True)
class Wakeups:
    """The reasons of one claimer; times are those of its monotonic clock."""

    now: Callable[[], float]
    others_wait: Callable[[], bool]
    """Returns whether others may wait for places of slow or of failing webhooks."""
    news: bool = True
    """There may be events to fan out."""
    looked: bool = False
    """The turn before has looked beside the results that it recorded."""
    due: bool = False
    """A claim may find something, as the last turn has seen."""
    crowded: bool = False
    """The last look may have left lanes that wait only for places."""
    behind: bool = False
    """The last look found deliveries that waited, or left some."""
    claim_at: float = 0.0
    """When a claim may find something."""
    fanned_at: float = inf
    """When events were looked for last; always, where each claim looks for them."""
    fan_out_at: float = 0.0
    """When to fan out again, after a failure."""
    notes_at: float = inf
    """When to look for the notes of other nodes; never, where there are none."""
    fanned_for: float | None = None
    """Seconds after which a fan-out beside results said that the next may find something."""

    @classmethod
    def apart(cls, now: Callable[[], float], others_wait: Callable[[], bool]) -> "Wakeups":
        """Return those of a claimer whose fan-out is apart from claims, beside other nodes."""
        return cls(now, others_wait, fanned_at=0.0, notes_at=0.0)

    def next(self) -> float:
        """Return when time alone is a reason to look."""
        return min(self.claim_at, self.notes_at, self.fanned_at + POLL_SECONDS)

    def may_poll(self) -> bool:
        """Return whether nothing but the time since the last look is a reason to look."""
        return not (
            self.news or self.looked or self.crowded or self.behind or self.others_wait()
            or self.now() < self.next()
        )  # fmt: skip

    def may_find(self, now: float) -> bool:
        """Return whether a claim may find something."""
        return self.crowded or self.behind or self.others_wait() or now >= self.claim_at

    def may_fan_out(self, now: float) -> bool:
        """Return whether there may be events to fan out, and the last one has not just failed."""
        return now >= self.fan_out_at and (self.news or now - self.fanned_at >= POLL_SECONDS)

    def found_nothing(self, moment: float, wait: float) -> None:
        """Note that a look has found nothing of any kind; a delivery is due in `wait` seconds."""
        self.claim_at = moment + wait
        if self.notes_at != inf:
            self.fanned_at, self.notes_at = moment, moment + POLL_SECONDS

    def look_soon(self) -> None:
        """Claim at the next turn, because deliveries may have become due."""
        self.claim_at = 0.0

    def due_in(self, wait: float) -> None:
        """Note that a delivery is due in `wait` seconds, as a result has said."""
        self.claim_at = min(self.claim_at, self.now() + wait)


@dataclass(slots=True)
class Arrivals:
    """How closely the latest events follow one another; times are those of a monotonic clock."""

    latest: float = -inf
    gap: float = COLLECT_SECONDS
    """The average time between the last ones, COLLECT_SECONDS at most."""
    steady: bool = False
    """Whether the last two came shortly after one another."""

    def hear(self, now: float) -> None:
        """Note an event."""
        passed = min(now - self.latest, COLLECT_SECONDS)
        self.steady = passed < COLLECT_SECONDS
        self.gap += (passed - self.gap) / 8
        self.latest = now

    def expect(self, now: float) -> bool:
        """Return whether the next one is expected soon."""
        return self.steady and now - self.latest < COLLECT_SECONDS

    def rest(self, turn_at: float, now: float) -> float:
        """Return seconds until the next turn, after one at `turn_at`, is worth its round trip."""
        return turn_at + SPACING_SECONDS - now if self.gap < DENSE_SECONDS else 0.0
