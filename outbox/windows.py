"""How much this worker sends at once, in all and to each webhook. In memory, per worker.

Slow receivers are what this is about: a send that has lasted a second gives its slot back, and
its webhook starts no other until it ends, so that no number of them holds up the rest.
"""

from dataclasses import dataclass

from outbox.deliveries import FAILING_WINDOW, FIRST_WINDOW, Claimed, Room
from outbox.policy import Window

WIDEST = 32
SLOW_SECONDS = 1.0
MOST_SLOW = 1024
# Of the slots, what webhooks whose last attempt failed may hold together.
FAILING_SHARE = 4
REMEMBERED = 20_000


@dataclass(slots=True, eq=False)
class Sending:
    """One send under way."""

    webhook_id: str
    failing: bool
    started: float
    slow: bool = False


@dataclass(slots=True)
class _Lane:
    width: int
    streak: int = 0
    in_flight: int = 0
    slow: int = 0

    @property
    def left(self) -> int:
        return 0 if self.slow else self.width - self.in_flight


class Windows:
    """Slots and windows of one worker."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.slow = 0
        self._fast: dict[Sending, None] = {}
        self._failing = 0
        self._lanes: dict[str, _Lane] = {}
        self._left: dict[str, int] = {}

    @property
    def busy(self) -> int:
        """Slots in use; slow sends hold none."""
        return len(self._fast)

    def room(self, node_id: str, claim: str, unsettled: int) -> Room:
        """What may be claimed now; `unsettled` finished sends keep their slots."""
        free = max(self.slots - self.busy - unsettled, 0)
        failing = max(self.slots // FAILING_SHARE - self._failing, 0)
        return Room(node_id, claim, free, min(free, failing), dict(self._left))

    def start(self, delivery: Claimed, failing: bool, now: float) -> Sending:
        """A send of `delivery` begins; `now` is monotonic seconds."""
        sending = Sending(delivery.webhook_id, failing, now)
        lane = self._lanes.get(delivery.webhook_id)
        if lane is None:
            self._forget_some()
            lane = _Lane(FAILING_WINDOW if failing else FIRST_WINDOW)
            self._lanes[delivery.webhook_id] = lane
        lane.in_flight += 1
        self._left[delivery.webhook_id] = lane.left
        self._fast[sending] = None
        self._failing += failing
        return sending

    def finish(self, sending: Sending, window: Window) -> int:
        """It ended, with this effect on its webhook's window; the window's new width."""
        lane = self._lanes[sending.webhook_id]
        lane.in_flight -= 1
        if sending.slow:
            lane.slow -= 1
            self.slow -= 1
        else:
            del self._fast[sending]
            self._failing -= sending.failing
        if window == "halve":
            lane.width, lane.streak = max(lane.width // 2, 1), 0
        elif window == "grow":
            lane.streak += 1
            if lane.streak >= lane.width and lane.width < WIDEST:
                lane.width, lane.streak = lane.width + 1, 0
        else:
            lane.streak = 0
        self._left[sending.webhook_id] = lane.left
        return lane.width

    def take_slots_back(self, now: float) -> float | None:
        """Mark sends that have become slow; seconds until the next one would, None if none."""
        for sending in list(self._fast):
            age = now - sending.started
            if age < SLOW_SECONDS:
                return SLOW_SECONDS - age
            if self.slow >= MOST_SLOW:
                return SLOW_SECONDS
            del self._fast[sending]
            self._failing -= sending.failing
            sending.slow = True
            self.slow += 1
            lane = self._lanes[sending.webhook_id]
            lane.slow += 1
            self._left[sending.webhook_id] = lane.left
        return None

    def _forget_some(self) -> None:
        """Keep memory bounded: webhooks with nothing under way start afresh next time."""
        if len(self._lanes) < REMEMBERED:
            return
        for webhook_id in [w for w, lane in self._lanes.items() if not lane.in_flight]:
            del self._lanes[webhook_id]
            del self._left[webhook_id]
