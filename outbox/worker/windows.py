"""How much this worker sends at once, in total and to each webhook. In memory, per worker.

This limits slow receivers: a send that lasts a second gives its slot back, and its webhook starts
again with a window of one. While its responses, however slow, are successes and places are free,
the window grows with its need; it gives places back when other webhooks need them. The number of
open slow sends is limited, in total and per owner; the oldest of the owner with the most is cut, so
that a slot always becomes free. It is one module because each limit depends on the others.
"""

from collections.abc import Iterable, Mapping

from outbox.queue.state.claimed_deliveries import FAILING_WINDOW, FIRST_WINDOW, Capacity, Claimed
from outbox.queue.state.fair_shares import Rank
from outbox.queue.state.policy import WindowStep
from outbox.worker.send_counts import (
    QUICK_FOR_SECONDS,
    FreeSends,
    Owners,
    Sending,
    SlowSends,
    Window,
)
from outbox.worker.slow_slots import SlowSlots

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
MOST_FURTHER = MOST_SLOW // 2
"""Places for sends of slow webhooks beyond the first of each; one owner may have OWNER_SHARE."""
MOST_SILENT = MOST_SLOW * 7 // 8
"""Slow sends to webhooks that have not answered may take this many places from those that do."""
SLOW_FOR_SECONDS = 10.0
"""A webhook counts as slow for this long after its last slow send, and needs its window unused."""
# Slots that all webhooks whose last attempt failed may use together, and slots that they get before
# the others.
FAILING_SHARE = 4
FAILING_FLOOR = 16
MOST_BYTES = 128 * 1024 * 1024
"""Memory for bodies of open requests; slow sends may use half of it."""
REMEMBERED = 20_000


class Windows:
    """Slots and windows of one worker."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._widest = max(min(WIDEST, slots // WIDEST_SHARE), WIDE)
        self.bytes = 0
        self._fast: dict[Sending, None] = {}
        self._slow = SlowSends()
        self._silent = SlowSends()
        """Those of the slow sends that are silent."""
        self._places = SlowSlots(self._widest - 1, MOST_FURTHER // OWNER_SHARE)
        self._failing = 0
        self._open = 0
        """Sends in flight, of any kind."""
        self._windows: dict[str, Window] = {}
        self.free: Mapping[str, int] = FreeSends(self._windows, self._rest)
        self._unused: dict[str, float] = {}
        """Slow webhooks without a send in flight, and since when, the longest first."""
        self._failing_next = True
        self._owners = Owners()
        self._now = 0.0

    @property
    def busy(self) -> int:
        """Slots in use; slow sends use none."""
        return len(self._fast)

    @property
    def slow(self) -> int:
        """Slow sends that are open and not cut."""
        return self._slow.count

    @property
    def failing(self) -> int:
        """Sends in flight to webhooks whose last attempt failed."""
        return self._failing

    def capacity(self, node_id: str, claim: str, unsettled: int) -> Capacity:
        """Return the capacity for a claim; `unsettled` finished sends keep their slots."""
        rest = self.slots - self.busy - unsettled
        free = max(rest, 0)
        failing = max(max(self.slots // FAILING_SHARE, 1) - self._failing, 0)
        first = max(max(self.slots // FAILING_FLOOR, 1) - self._failing, 0)
        if free == 1:
            # With a share of one place, only every other claim gets it, or these webhooks would get
            # all.
            first = min(first, self._failing_next)
            self._failing_next = not self._failing_next
        return Capacity(
            node_id=node_id,
            claim=claim,
            slots=free,
            failing_slots=min(free, failing),
            failing_first=min(free, first),
            windows=self.free,
            body_bytes=max(MOST_BYTES - self.bytes, 0),
            shares=self._owners.shares(self.slots, rest, self._rank),
        )

    def rests(self, webhook_ids: Iterable[str]) -> Mapping[str, int] | None:
        """Return how many sends each of these webhooks may start.

        None when another one has a send in flight. Each one that has none may start one.
        """
        rests: dict[str, int] = {}
        open_sends = 0
        for webhook_id in webhook_ids:
            if (window := self._windows.get(webhook_id)) is not None:
                open_sends += window.in_flight
                rests[webhook_id] = self._rest(window)
        return rests if open_sends == self._open else None

    def _rank(self, webhook_id: str) -> Rank:
        window = self._windows.get(webhook_id)
        return Rank.OTHER if window is None else window.rank(self._now)

    def _rest(self, window: Window) -> int:
        """Return how many sends a webhook may start now."""
        limit = self._limit(window) if window.needed else window.width
        rest = limit - window.in_flight
        if rest <= 0 or not window.slow_until:
            return rest
        first = int(not window.in_flight)
        return min(rest, first + self._free(window)) if rest > first else rest

    def start(self, delivery: Claimed, failing: bool, now: float) -> Sending:
        """Start a send of `delivery`; `now` is monotonic seconds."""
        size = len(delivery.event.body or b"")
        window = self._windows.get(delivery.webhook_id)
        if window is None:
            self._forget_some()
            width = FAILING_WINDOW if failing else FIRST_WINDOW
            window = Window(delivery.owner_id, width, steep_below=width if failing else WIDE)
            self._windows[delivery.webhook_id] = window
        sending = Sending(
            delivery.webhook_id, delivery.owner_id, size, failing, now,
            limited=failing or (self._limit(window) if window.needed else window.width) == 1,
            open_since=window.open_since,
        )  # fmt: skip
        self._unused.pop(delivery.webhook_id, None)
        window.in_flight += 1
        self._open += 1
        window.size = size
        self._owners.start(delivery.owner_id)
        self._fast[sending] = None
        self._failing += failing
        self.bytes += size
        if window.slow_until or window.needed:
            self._count(window)
        if self._rest(window) <= 0:
            window.full_at = now
        return sending

    def finish(self, sending: Sending, step: WindowStep, now: float) -> int:
        """End a send, with this effect on its webhook's window; return the window's new width."""
        sending.done = True
        window = self._windows[sending.webhook_id]
        full = self._rest(window) <= 0
        if full:
            window.full_at = now
        if full or window.slow_until:
            # A slow webhook may also wait for places; it gets them when one of its sends ends.
            window.open_since = now
        window.in_flight -= 1
        self._open -= 1
        self.bytes -= sending.size
        if sending.slow:
            window.slow -= 1
            if not sending.cut:
                self._remove(sending)
        else:
            self._free_slot(sending)
        if step == "grow" and now - sending.started <= QUICK_SECONDS:
            window.quick_until = now + QUICK_FOR_SECONDS
        if window.slow_until:
            self._step_of_slow(window, sending, step, now)
        elif step == "halve":
            window.width, window.streak = max(window.width // 2, 1), 0
            window.steep_below = window.width
        elif step == "grow":
            self._grow(window, now - sending.started)
        else:
            window.streak = 0
        if window.slow_until or window.needed:
            self._count(window)
        if window.needed and not window.in_flight:
            self._unused[sending.webhook_id] = now
        return self._limit(window) if window.needed else window.width

    def take_slots_back(self, now: float) -> tuple[float | None, list[Sending]]:
        """Mark sends that have become slow.

        Return seconds until the next one would, None if none; and the sends to cut now.
        """
        self._now = now
        self._narrow_unused(now)
        cut: list[Sending] = []
        for sending in list(self._fast):
            age = now - sending.started
            if age < SLOW_SECONDS:
                return SLOW_SECONDS - age, cut
            self._free_slot(sending)
            window = self._windows[sending.webhook_id]
            if not window.slow_until:
                window.width, window.streak, window.answering = 1, 0, False
                window.steep_below = 1
            window.slow += 1
            window.slow_until = now + SLOW_FOR_SECONDS
            self._count(window)
            sending.slow, sending.silent = True, not window.answering
            self._slow.add(sending)
            if sending.silent:
                self._silent.add(sending)
            cut += self._over(sending.owner_id)
        return None, cut

    def _free_slot(self, sending: Sending) -> None:
        del self._fast[sending]
        self._failing -= sending.failing
        self._owners.release(sending.owner_id)

    def _grow(self, window: Window, seconds: float) -> None:
        """Count a success after `seconds`; past WIDE only quick ones widen, and others narrow.

        The width doubles with each row of successes until the first failure, and after it up to
        the width that the failure left, like the slow start of TCP.
        """
        if window.width >= WIDE and seconds > QUICK_SECONDS:
            window.width, window.streak = max(window.width - 1, WIDE), 0
            return
        if window.width < window.steep_below:
            window.width += 1
            return
        window.streak += 1
        if window.streak >= window.width and window.width < self._widest:
            window.width, window.streak = window.width + 1, 0

    def _step_of_slow(self, window: Window, sending: Sending, step: WindowStep, now: float) -> None:
        """Adapt a slow webhook's window to its need with each success; halve it by a failure."""
        if step == "grow":
            window.answering = True
            if window.full_at >= sending.started:
                window.width = min(window.width + 1, self._widest)
            else:
                window.width = max(window.width - 1, 1)
            if not window.slow and now >= window.slow_until:
                window.slow_until, window.answering = 0.0, False
                window.width = min(window.width, WIDE)
        elif step == "halve" or sending.slow:
            window.answering = False
            window.width = max(window.width // 2, 1)

    def _limit(self, window: Window) -> int:
        """Return how many sends a webhook may have in flight."""
        if not window.needed:
            return window.width
        part = self._places.part(window.owner_id, self._further())
        return 1 + min(window.needed, self._places.share(window.owner_id, part))

    def _further(self) -> int:
        """Return the places that slow webhooks may use beyond the first of each."""
        first = max(self._slow.count - self._silent.count - self._places.used, 0)
        rest = MOST_SLOW - first - min(self._silent.count, MOST_SILENT)
        return max(min(rest, MOST_FURTHER), 0)

    def _free(self, window: Window) -> int:
        """Return how many sends beyond its first this slow webhook may start now.

        They fill at most half of the slots and a quarter of the memory: they may not be what makes
        others wait, or what is cut.
        """
        further = self._further()
        part = self._places.part(window.owner_id, further)
        return max(
            min(
                part - self._places.used_by(window.owner_id),
                further - self._places.used,
                self.slots // 2 - self.busy,
                (MOST_BYTES // 4 - self.bytes) // max(window.size, 1),
            ),
            0,
        )

    def _count(self, window: Window) -> None:
        """Count what a webhook needs beyond its first place, and uses while it answers."""
        needed = window.width - 1 if window.slow_until else 0
        used = max(window.in_flight - 1, 0) if window.answering else 0
        if (needed, used) != (window.needed, window.used):
            self._places.change(window.owner_id, (window.needed, needed), (window.used, used))
            window.needed, window.used = needed, used

    def _narrow_unused(self, now: float) -> None:
        """Take the places of slow webhooks that have sent nothing for a while."""
        while self._unused:
            webhook_id, since = next(iter(self._unused.items()))
            if now - since < SLOW_FOR_SECONDS:
                return
            del self._unused[webhook_id]
            window = self._windows[webhook_id]
            window.width = 1
            self._count(window)

    def _over(self, owner_id: str) -> list[Sending]:
        """Return the sends to cut after `owner_id` has one more slow send."""
        cut: list[Sending] = []
        while True:
            if self._slow.of(owner_id) > MOST_SLOW // OWNER_SHARE:
                oldest = self._slow.oldest(owner_id)
            elif self._slow.count > MOST_SLOW:
                # The last eighth belongs to webhooks that answer.
                sends = self._silent if self._silent.count > MOST_SILENT else self._slow
                oldest = sends.oldest(sends.holds_most())
            elif self._slow.bytes > MOST_BYTES // 2:
                oldest = self._slow.oldest(self._slow.holds_most_bytes())
            else:
                return cut
            oldest.cut = True
            self._remove(oldest)
            cut.append(oldest)

    def _remove(self, sending: Sending) -> None:
        self._slow.remove(sending)
        if sending.silent:
            self._silent.remove(sending)

    def _forget_some(self) -> None:
        """Limit memory: webhooks without a send in flight start anew next time."""
        if len(self._windows) < REMEMBERED:
            return
        for webhook_id in [w for w, window in self._windows.items() if not window.in_flight]:
            if self._unused.pop(webhook_id, None) is not None:
                window = self._windows[webhook_id]
                window.width = 1
                self._count(window)
            del self._windows[webhook_id]
