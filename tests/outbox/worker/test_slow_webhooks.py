"""Windows of webhooks that answer late, simulated: their waiting, their places and their bounds."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count

from outbox.queue.state.claimed_deliveries import FIRST_WINDOW
from outbox.worker.send_counts import Sending
from outbox.worker.windows import MOST_SLOW, OWNER_SHARE, Windows
from tests.support.drain import claimed

TIMEOUT = 15.0
TURN = 0.05
OWNER_MOST = MOST_SLOW // OWNER_SHARE


@dataclass
class Hook:
    """A webhook, its events per second, and how long a request takes; None: it never answers."""

    id: str
    owner: str
    rate: float
    takes: Callable[[float], float | None]
    due: float = 0.0
    waiting: int = 0
    failing: bool = False
    sent: int = 0
    cut: int = 0
    most_in_flight: int = 0


@dataclass
class Run:
    """Events of all webhooks, claimed and sent as a worker does, by a clock of its own."""

    hooks: Sequence[Hook]
    slots: int = 256
    now: float = 0.0
    waiting: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    most_slow: int = 0
    cut: int = 0

    def __post_init__(self) -> None:
        self.windows = Windows(self.slots)
        self.open: dict[str, set[Sending]] = defaultdict(set)
        self._ends: list[tuple[float, int, Sending, Hook, bool]] = []
        self._number = count()

    def run(self, until: float) -> None:
        while self.now < until:
            self.now += TURN
            self._turn()
            for hook in self.hooks:
                self.waiting[hook.id].append(hook.waiting)
            self.most_slow = max(self.most_slow, self.windows.slow)

    def _turn(self) -> None:
        while self._ends and self._ends[0][0] <= self.now:
            _, _, sending, hook, answered = heapq.heappop(self._ends)
            if not sending.done:
                self._finish(sending, hook, answered)
        by_id = {hook.id: hook for hook in self.hooks}
        for sending in self.windows.take_slots_back(self.now)[1]:
            self.cut += 1
            by_id[sending.webhook_id].cut += 1
            self._finish(sending, by_id[sending.webhook_id], False)
        for hook in self.hooks:
            while hook.rate and hook.due <= self.now:
                hook.due += 1 / hook.rate
                hook.waiting += 1
        self._claim()

    def _claim(self) -> None:
        """Give each lane that is due one place in turn, within its window, as the claim does."""
        capacity = self.windows.capacity("n", "c", 0)
        slots, failing = capacity.slots, capacity.failing_slots
        turn = sorted((h for h in self.hooks if h.waiting), key=lambda h: h.sent)
        rests = {
            h.id: min(capacity.windows.get(h.id, FIRST_WINDOW), 1 if h.failing else 1 << 10)
            for h in turn
        }
        chosen: list[Hook] = []
        while slots > 0 and turn:
            for hook in turn:
                rests[hook.id] -= 1
                fits = rests[hook.id] >= 0 and slots > 0 and (failing > 0 or not hook.failing)
                if not fits:
                    rests[hook.id] = 0
                    continue
                hook.waiting -= 1
                slots -= 1
                failing -= hook.failing
                chosen.append(hook)
            turn = [h for h in turn if h.waiting and rests[h.id] > 0]
        for hook in chosen:
            self._start(hook)

    def _start(self, hook: Hook) -> None:
        delivery = claimed(hook.id, hook.owner)
        sending = self.windows.start(delivery, hook.failing, self.now)
        self.open[hook.id].add(sending)
        hook.most_in_flight = max(hook.most_in_flight, len(self.open[hook.id]))
        hook.sent += 1
        takes = hook.takes(self.now)
        end = self.now + (TIMEOUT if takes is None else takes)
        answered = takes is not None
        heapq.heappush(self._ends, (end, next(self._number), sending, hook, answered))

    def _finish(self, sending: Sending, hook: Hook, answered: bool) -> None:
        self.windows.finish(sending, "grow" if answered else "halve", self.now)
        self.open[hook.id].discard(sending)
        hook.failing = not answered


def steady(seconds: float) -> Callable[[float], float | None]:
    return lambda _: seconds


def never(_: float) -> float | None:
    return None


def test_one_slow_webhook_gives_its_places_back_when_another_needs_them() -> None:
    """Within one of its send times both have equal parts; then each has what it needs of them."""
    first = Hook("first", "o", 100.0, steady(3.0))
    other = Hook("other", "o", 0.0, steady(3.0))
    run = Run([first, other])
    run.run(60.0)
    alone = len(run.open["first"])
    assert alone > 50
    other.rate, other.due = 100.0, run.now
    together = []
    while run.now < 100.0:
        run.run(run.now + TURN)
        together.append(len(run.open["first"]) + len(run.open["other"]))
    assert max(together) <= OWNER_MOST // 2 + 2
    half = OWNER_MOST // 4 + 1
    assert abs(len(run.open["first"]) - half) <= 2
    assert abs(len(run.open["other"]) - half) <= 2
    other.rate = other.waiting = 0
    run.run(130.0)
    assert len(run.open["first"]) >= alone - 2
    assert run.cut == 0


def test_a_quick_webhook_that_hangs_starts_no_more_after_a_second() -> None:
    answers = [steady(0.2)]
    hook = Hook("w", "o", 10.0, lambda now: answers[0](now))
    run = Run([hook])
    run.run(30.0)
    answers[0] = never
    run.run(run.now + TIMEOUT)
    assert len(run.open["w"]) <= 12
    hook.most_in_flight = 0
    run.run(run.now + TIMEOUT)
    assert hook.most_in_flight == 1
