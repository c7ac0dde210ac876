"""Slots and windows, as values without waiting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.queue.state.claimed_deliveries import FIRST_WINDOW
from outbox.queue.state.fair_shares import Rank
from outbox.queue.state.policy import WindowStep
from outbox.worker.send_counts import Sending
from outbox.worker.windows import (
    MOST_BYTES,
    MOST_SILENT,
    MOST_SLOW,
    OWNER_SHARE,
    WIDE,
    WIDEST,
    Windows,
)
from tests.support.drain import claimed


def finished(windows: Windows, effects: list[WindowStep]) -> list[int]:
    """Return the width after each of these ends of sends, one after another."""
    return [windows.finish(windows.start(claimed("w"), False, 0.0), e, 0.0) for e in effects]


def test_a_window_doubles_with_each_row_of_successes_until_the_first_failure() -> None:
    windows = Windows(256)
    assert finished(windows, ["grow"] * 2) == [3, 4]
    assert finished(windows, ["grow"] * 4) == [5, 6, 7, 8]
    assert finished(windows, ["halve"]) == [4]
    # From here on by one after as many successes as it is wide.
    assert finished(windows, ["grow"] * 9) == [4, 4, 4, 5, 5, 5, 5, 5, 6]


def test_it_halves_down_to_one_and_never_grows_past_the_widest() -> None:
    windows = Windows(256)
    for _ in range(3000):
        width = windows.finish(windows.start(claimed("w"), False, 0.0), "grow", 0.0)
    assert width == WIDEST
    widths = [
        windows.finish(windows.start(claimed("w"), False, 0.0), "halve", 0.0) for _ in range(7)
    ]
    assert widths == [32, 16, 8, 4, 2, 1, 1]


def test_only_a_quick_receiver_gets_the_widest_window() -> None:
    windows = Windows(256)

    def answer(seconds: float) -> int:
        return windows.finish(windows.start(claimed("w"), False, 0.0), "grow", seconds)

    assert max(answer(0.2) for _ in range(3000)) == WIDE
    assert max(answer(0.1) for _ in range(3000)) == WIDEST
    assert [answer(0.2) for _ in range(3)] == [WIDEST - 1, WIDEST - 2, WIDEST - 3]
    assert min(answer(0.2) for _ in range(3000)) == WIDE
    # The successes of a slow one do not add up to a wider window.
    assert [answer(0.2) for _ in range(WIDE)] + [answer(0.1)] == [WIDE] * (WIDE + 1)


@pytest.mark.parametrize(("slots", "widest"), [(512, 64), (256, 64), (160, 40), (8, 32)])
def test_no_webhook_gets_more_than_a_quarter_of_many_slots(slots: int, widest: int) -> None:
    windows = Windows(slots)
    widths = [
        windows.finish(windows.start(claimed("w"), False, 0.0), "grow", 0.0) for _ in range(3000)
    ]
    assert max(widths) == widest


def test_the_oldest_sends_to_webhooks_that_do_not_answer_are_cut_before_those_that_do() -> None:
    windows = Windows(MOST_SLOW * 2)
    for number in range(40):
        first = windows.start(claimed("answers", "busy"), False, 0.0)
        if number == 0:
            windows.take_slots_back(1.0)
        windows.finish(first, "grow", 2.0)
    busy = [windows.start(claimed("answers", "busy"), False, 2.0) for _ in range(20)]
    for number in range(MOST_SLOW):
        windows.start(claimed(f"w{number}", f"o{number % 512}"), False, 2.0)
    _, cut = windows.take_slots_back(3.0)
    assert len(cut) == 20
    assert windows.slow == MOST_SLOW
    assert not any(sending.cut for sending in busy)
    assert windows.slow - len(busy) >= MOST_SILENT
    # However many hang, an eighth of the places is there for those that answer.
    for sending in busy:
        windows.finish(sending, "grow", 4.0)
    for number in range(MOST_SLOW):
        windows.start(claimed(f"v{number}", f"p{number % 512}"), False, 4.0)
    windows.take_slots_back(5.0)
    assert windows.slow == MOST_SLOW
    assert windows.free["answers"] > 20


def test_above_the_limit_the_oldest_slow_sends_of_the_largest_owner_are_cut() -> None:
    windows = Windows(MOST_SLOW * 2)
    big = MOST_SLOW // OWNER_SHARE
    for number in range(MOST_SLOW + 5):
        # One owner has the maximum, each of the others has fewer.
        owner = "big" if number < big else f"o{number // 7}"
        windows.start(claimed(f"w{number}", owner), False, 0.0)
    soon, cut = windows.take_slots_back(1.0)
    assert soon is None
    assert windows.slow == MOST_SLOW
    assert windows.busy == 0
    assert [(s.owner_id, s.webhook_id) for s in cut] == [("big", f"w{n}") for n in range(5)]
    assert all(s.cut for s in cut)


def test_one_owner_has_an_eighth_of_the_slow_sends() -> None:
    windows = Windows(MOST_SLOW)
    share = MOST_SLOW // OWNER_SHARE
    sends = [windows.start(claimed(f"w{n}", "big"), False, 0.0) for n in range(share + 3)]
    windows.start(claimed("other", "small"), False, 0.0)
    _, cut = windows.take_slots_back(1.0)
    assert cut == sends[:3]
    assert windows.slow == share + 1
    # A webhook whose send was cut starts no other until that has ended.
    assert windows.free["w0"] == 0
    windows.finish(cut[0], "halve", 0.0)
    assert windows.free["w0"] == 1


def test_slow_sends_hold_half_of_the_bytes_at_most() -> None:
    windows = Windows(64)
    body = b"x" * (MOST_BYTES // 16)
    sends = [windows.start(claimed(f"w{n}", f"o{n % 3}", body), False, 0.0) for n in range(9)]
    assert windows.capacity("n", "c", 0).body_bytes == MOST_BYTES - 9 * len(body)
    _, cut = windows.take_slots_back(1.0)
    assert cut == [sends[0]]
    for sending in sends:
        windows.finish(sending, "keep", 0.0)
    assert windows.capacity("n", "c", 0).body_bytes == MOST_BYTES


def test_webhooks_that_fail_share_a_quarter_of_the_slots() -> None:
    windows = Windows(16)
    for number in range(3):
        windows.start(claimed(f"w{number}"), True, 0.0)
    assert windows.capacity("n", "c", 0).failing_slots == 1
    assert windows.capacity("n", "c", 0).slots == 13


def test_webhooks_that_fail_have_a_sixteenth_before_the_others() -> None:
    windows = Windows(64)
    assert windows.capacity("n", "c", 0).failing_first == 4
    windows.start(claimed("w"), True, 0.0)
    assert windows.capacity("n", "c", 0).failing_first == 3


def test_a_single_slot_goes_to_failing_webhooks_every_other_time() -> None:
    windows = Windows(1)
    capacities = [windows.capacity("n", "c", 0) for _ in range(4)]
    assert [capacity.failing_first for capacity in capacities] == [1, 0, 1, 0]
    assert {capacity.failing_slots for capacity in capacities} == {1}


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["start", "finish", "slow"]),
            st.integers(0, 4),
            st.sampled_from(["grow", "halve", "keep"]),
        ),
        max_size=120,
    )
)
def test_the_counts_stay_consistent(steps: list[tuple[str, int, WindowStep]]) -> None:
    windows = Windows(8)
    under_way: list[Sending] = []
    now = 0.0
    for step, number, effect in steps:
        now += 0.3
        if step == "start":
            under_way.append(windows.start(claimed(f"w{number}"), number == 0, now))
        elif step == "finish" and under_way:
            windows.finish(under_way.pop(number % len(under_way)), effect, 0.0)
        else:
            windows.take_slots_back(now)
        assert windows.busy + windows.slow == len(under_way)
        assert windows.slow == sum(sending.slow for sending in under_way)
        assert windows.bytes == sum(sending.size for sending in under_way)
    for sending in under_way:
        windows.finish(sending, "keep", 0.0)
    capacity = windows.capacity("n", "c", 0)
    assert (windows.busy, windows.slow, capacity.slots, capacity.failing_slots) == (0, 0, 8, 2)
    assert all(1 <= left <= WIDEST for left in capacity.windows.values())


def test_the_time_behind_other_sends_to_the_same_webhook_is_known() -> None:
    """A send learns when its webhook was last full; other webhooks do not matter."""
    windows = Windows(256)
    first, second = (windows.start(claimed("w"), False, 0.0) for _ in range(FIRST_WINDOW))
    assert (first.open_since, first.limited) == (0.0, False)
    windows.finish(first, "keep", 7.0)
    assert windows.start(claimed("w"), False, 7.5).open_since == 7.0
    windows.finish(second, "keep", 9.0)
    assert windows.start(claimed("w"), False, 9.5).open_since == 9.0
    assert windows.start(claimed("other"), False, 9.5).open_since == 0.0


def test_sends_in_slots_count_for_their_owners_until_the_slot_is_free() -> None:
    windows = Windows(256)
    quick = windows.start(claimed("w1", "a"), False, 0.0)
    windows.start(claimed("w2", "a"), False, 0.0)
    windows.start(claimed("w3", "b"), False, 0.5)

    def held() -> dict[str, int]:
        owners = windows.capacity("n", "c", 0).shares.owners
        return {one: owners[one].held for one in owners}

    assert held() == {"a": 2, "b": 1}
    windows.finish(quick, "grow", 0.6)
    assert held() == {"a": 1, "b": 1}
    windows.take_slots_back(1.0)
    assert held() == {"a": 0, "b": 1}
    owners = windows.capacity("n", "c", 0).shares.owners
    assert owners["a"].turn < owners["b"].turn
    assert (owners["a"].served, owners["b"].served) == (2, 1)


@pytest.mark.parametrize(
    ("slots", "busy", "unsettled", "free", "further"),
    [(256, 250, 0, 6, 32), (256, 250, 6, 0, 32), (256, 260, 0, 0, 28), (256, 288, 5, 0, 0),
     (4, 4, 0, 0, 0)],
)  # fmt: skip
def test_places_beyond_the_slots_are_an_eighth_of_them(
    slots: int, busy: int, unsettled: int, free: int, further: int
) -> None:
    windows = Windows(slots)
    for number in range(busy):
        windows.start(claimed(f"w{number}"), False, 0.0)
    capacity = windows.capacity("n", "c", unsettled)
    assert (capacity.slots, capacity.shares.further) == (free, further)


def test_a_webhook_is_quick_for_a_minute_and_last_while_a_slow_send_is_open() -> None:
    windows = Windows(256)
    rank = windows.capacity("n", "c", 0).shares.rank
    assert rank("w") == Rank.OTHER
    windows.finish(windows.start(claimed("w"), False, 0.0), "grow", 0.1)
    assert rank("w") == Rank.QUICK
    slow = windows.start(claimed("w"), False, 1.0)
    windows.take_slots_back(1.9)
    assert rank("w") == Rank.QUICK
    windows.take_slots_back(2.0)
    assert rank("w") == Rank.SLOW
    windows.finish(slow, "grow", 5.0)
    assert rank("w") == Rank.QUICK
    windows.take_slots_back(60.1)
    assert rank("w") == Rank.OTHER
    windows.finish(windows.start(claimed("w"), False, 61.0), "grow", 61.2)
    assert rank("w") == Rank.OTHER, "two tenths of a second are not quick"
