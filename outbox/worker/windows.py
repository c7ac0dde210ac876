"""How much this worker sends at once, in all and to each webhook. In memory, per worker.

Slow receivers are what this is about: a send that has lasted a second gives its slot back, and
its webhook starts no other until it ends. Of slow sends only so many may be open, in all and of
one owner; the oldest of whoever holds most is cut, so that a slot always comes back.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from outbox.queue.deliveries import FAILING_WINDOW, FIRST_WINDOW, Capacity, Claimed
from outbox.queue.policy import WindowStep
from outbox.worker.slow import Sending, SlowSends

WIDEST = 32
SLOW_SECONDS = 1.0
MOST_SLOW = 1024
OWNER_SHARE = 8
"""One owner may have one part in so many of the slow sends."""
# Of the slots, what webhooks whose last attempt failed may hold together, and what they may have
# before the others.
FAILING_SHARE = 4
FAILING_FLOOR = 16
MOST_BYTES = 128 * 1024 * 1024
"""Bodies that are held in memory for their requests; slow sends may hold half of it."""
REMEMBERED = 20_000


@dataclass(slots=True)
class Window:
    """How much is under way to one webhook, and how much may be."""

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
        self.bytes = 0
        self._fast: dict[Sending, None] = {}
        self._slow = SlowSends()
        self._failing = 0
        self._windows: dict[str, Window] = {}
        self._left: dict[str, int] = {}
        self._failing_next = True

    @property
    def busy(self) -> int:
        """Slots in use; slow sends hold none."""
        return len(self._fast)

    @property
    def slow(self) -> int:
        """Slow sends that are open and not cut."""
        return self._slow.count

    @property
    def left(self) -> Mapping[str, int]:
        """What is left of each webhook's window, as it stands at any time."""
        return self._left

    def capacity(self, node_id: str, claim: str, unsettled: int) -> Capacity:
        """What may be claimed now; `unsettled` finished sends keep their slots."""
        free = max(self.slots - self.busy - unsettled, 0)
        failing = max(max(self.slots // FAILING_SHARE, 1) - self._failing, 0)
        first = max(max(self.slots // FAILING_FLOOR, 1) - self._failing, 0)
        if free == 1:
            # Of single places every other one, or they would have all of them.
            first = min(first, self._failing_next)
            self._failing_next = not self._failing_next
        return Capacity(
            node_id, claim, free, min(free, failing), min(free, first), self._left,
            max(MOST_BYTES - self.bytes, 0),
        )  # fmt: skip

    def start(self, delivery: Claimed, failing: bool, now: float) -> Sending:
        """A send of `delivery` begins; `now` is monotonic seconds."""
        size = len(delivery.body or b"")
        sending = Sending(delivery.webhook_id, delivery.owner_id, size, failing, now)
        window = self._windows.get(delivery.webhook_id)
        if window is None:
            self._forget_some()
            window = Window(FAILING_WINDOW if failing else FIRST_WINDOW)
            self._windows[delivery.webhook_id] = window
        window.in_flight += 1
        self._left[delivery.webhook_id] = window.left
        self._fast[sending] = None
        self._failing += failing
        self.bytes += size
        return sending

    def finish(self, sending: Sending, step: WindowStep) -> int:
        """It ended, with this effect on its webhook's window; the window's new width."""
        sending.done = True
        window = self._windows[sending.webhook_id]
        window.in_flight -= 1
        self.bytes -= sending.size
        if sending.slow:
            window.slow -= 1
            if not sending.cut:
                self._slow.remove(sending)
        else:
            del self._fast[sending]
            self._failing -= sending.failing
        if sending.slow:
            # Whatever it answered: its next one may hold a slot for a second too.
            window.width, window.streak = 1, 0
        elif step == "halve":
            window.width, window.streak = max(window.width // 2, 1), 0
        elif step == "grow":
            window.streak += 1
            if window.streak >= window.width and window.width < WIDEST:
                window.width, window.streak = window.width + 1, 0
        else:
            window.streak = 0
        self._left[sending.webhook_id] = window.left
        return window.width

    def take_slots_back(self, now: float) -> tuple[float | None, list[Sending]]:
        """Mark sends that have become slow.

        Seconds until the next one would, None if none; and the sends that are to be cut now.
        """
        cut: list[Sending] = []
        for sending in list(self._fast):
            age = now - sending.started
            if age < SLOW_SECONDS:
                return SLOW_SECONDS - age, cut
            del self._fast[sending]
            self._failing -= sending.failing
            sending.slow = True
            self._slow.add(sending)
            window = self._windows[sending.webhook_id]
            window.slow += 1
            window.width, window.streak = 1, 0
            self._left[sending.webhook_id] = window.left
            cut += self._over(sending.owner_id)
        return None, cut

    def _over(self, owner_id: str) -> list[Sending]:
        """What has to go since `owner_id` has one slow send more."""
        cut: list[Sending] = []
        while True:
            if self._slow.of(owner_id) > MOST_SLOW // OWNER_SHARE:
                holder = owner_id
            elif self._slow.count > MOST_SLOW:
                holder = self._slow.holds_most()
            elif self._slow.bytes > MOST_BYTES // 2:
                holder = self._slow.holds_most_bytes()
            else:
                return cut
            oldest = self._slow.oldest(holder)
            oldest.cut = True
            self._slow.remove(oldest)
            cut.append(oldest)

    def _forget_some(self) -> None:
        """Keep memory bounded: webhooks with nothing under way start afresh next time."""
        if len(self._windows) < REMEMBERED:
            return
        for webhook_id in [w for w, window in self._windows.items() if not window.in_flight]:
            del self._windows[webhook_id]
            del self._left[webhook_id]
