"""How much this worker sends at once, in total and to each webhook. In memory, per worker.

This limits slow receivers: a send that lasts a second gives its slot back, and its webhook starts
no other until it ends. The number of open slow sends is limited, in total and per owner; the oldest
of the owner with the most is cut, so that a slot always becomes free.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from outbox.queue.deliveries import FAILING_WINDOW, FIRST_WINDOW, Capacity, Claimed
from outbox.queue.policy import WindowStep
from outbox.worker.slow import Sending, SlowSends

WIDEST = 64
WIDE = 32
"""The widest window of a receiver whose requests take longer than QUICK_SECONDS."""
QUICK_SECONDS = 0.1
SLOW_SECONDS = 1.0
MOST_SLOW = 1024
WIDEST_SHARE = 4
"""One webhook may get this fraction (1/n) of the slots; always WIDE of them."""
OWNER_SHARE = 8
"""One owner may have this fraction (1/n) of the slow sends."""
# Slots that all webhooks whose last attempt failed may use together, and slots that they get before
# the others.
FAILING_SHARE = 4
FAILING_FLOOR = 16
MOST_BYTES = 128 * 1024 * 1024
"""Memory for bodies of open requests; slow sends may use half of it."""
REMEMBERED = 20_000


@dataclass(slots=True)
class Window:
    """The sends in flight to one webhook, and their limit."""

    width: int
    streak: int = 0
    in_flight: int = 0
    slow: int = 0
    open_since: float = 0.0
    """When it was last full, in monotonic seconds."""

    @property
    def left(self) -> int:
        return 0 if self.slow else self.width - self.in_flight


class Windows:
    """Slots and windows of one worker."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._widest = max(min(WIDEST, slots // WIDEST_SHARE), WIDE)
        self.bytes = 0
        self._fast: dict[Sending, None] = {}
        self._slow = SlowSends()
        self._failing = 0
        self._windows: dict[str, Window] = {}
        self._left: dict[str, int] = {}
        self._failing_next = True

    @property
    def busy(self) -> int:
        """Slots in use; slow sends use none."""
        return len(self._fast)

    @property
    def slow(self) -> int:
        """Slow sends that are open and not cut."""
        return self._slow.count

    @property
    def left(self) -> Mapping[str, int]:
        """The rest of each webhook's window, as a live view."""
        return self._left

    def capacity(self, node_id: str, claim: str, unsettled: int) -> Capacity:
        """Return the capacity for a claim; `unsettled` finished sends keep their slots."""
        free = max(self.slots - self.busy - unsettled, 0)
        failing = max(max(self.slots // FAILING_SHARE, 1) - self._failing, 0)
        first = max(max(self.slots // FAILING_FLOOR, 1) - self._failing, 0)
        if free == 1:
            # With a share of one place, only every other claim gets it, or these webhooks would get
            # all.
            first = min(first, self._failing_next)
            self._failing_next = not self._failing_next
        return Capacity(
            node_id, claim, free, min(free, failing), min(free, first), self._left,
            max(MOST_BYTES - self.bytes, 0),
        )  # fmt: skip

    def start(self, delivery: Claimed, failing: bool, now: float) -> Sending:
        """Start a send of `delivery`; `now` is monotonic seconds."""
        size = len(delivery.body or b"")
        window = self._windows.get(delivery.webhook_id)
        if window is None:
            self._forget_some()
            window = Window(FAILING_WINDOW if failing else FIRST_WINDOW)
            self._windows[delivery.webhook_id] = window
        sending = Sending(
            delivery.webhook_id, delivery.owner_id, size, failing, now,
            limited=failing or window.width == 1, open_since=window.open_since,
        )  # fmt: skip
        window.in_flight += 1
        self._left[delivery.webhook_id] = window.left
        self._fast[sending] = None
        self._failing += failing
        self.bytes += size
        return sending

    def finish(self, sending: Sending, step: WindowStep, now: float) -> int:
        """End a send, with this effect on its webhook's window; return the window's new width."""
        sending.done = True
        window = self._windows[sending.webhook_id]
        if window.left <= 0:
            window.open_since = now
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
            # Whatever its response: its next send may also use a slot for a second.
            window.width, window.streak = 1, 0
        elif step == "halve":
            window.width, window.streak = max(window.width // 2, 1), 0
        elif step == "grow":
            self._grow(window, now - sending.started)
        else:
            window.streak = 0
        self._left[sending.webhook_id] = window.left
        return window.width

    def take_slots_back(self, now: float) -> tuple[float | None, list[Sending]]:
        """Mark sends that have become slow.

        Return seconds until the next one would, None if none; and the sends to cut now.
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

    def _grow(self, window: Window, seconds: float) -> None:
        """Count a success after `seconds`; past WIDE only quick ones widen, and others narrow."""
        if window.width >= WIDE and seconds > QUICK_SECONDS:
            window.width, window.streak = max(window.width - 1, WIDE), 0
            return
        window.streak += 1
        if window.streak >= window.width and window.width < self._widest:
            window.width, window.streak = window.width + 1, 0

    def _over(self, owner_id: str) -> list[Sending]:
        """Return the sends to cut after `owner_id` has one more slow send."""
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
        """Limit memory: webhooks without a send in flight start anew next time."""
        if len(self._windows) < REMEMBERED:
            return
        for webhook_id in [w for w, window in self._windows.items() if not window.in_flight]:
            del self._windows[webhook_id]
            del self._left[webhook_id]
