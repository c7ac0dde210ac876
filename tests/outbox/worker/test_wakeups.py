"""What makes a claimer look for work, and when time alone does."""

from typing import Any

import pytest

from outbox.worker.wakeups import POLL_SECONDS, SPACING_SECONDS, Arrivals, Wakeups


def wakeups(*, apart: bool = False, others: bool = False, **seen: Any) -> Wakeups:
    make = Wakeups.apart if apart else Wakeups
    made = make(lambda: 100.0, lambda: others)
    made.news, made.claim_at = False, 101.0
    for name, value in seen.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("seen", "may_poll", "may_find"),
    [
        ({"claim_at": 100.0}, True, True),
        ({}, False, False),
        ({"claim_at": 100.0, "news": True}, False, True),
        ({"claim_at": 100.0, "looked": True}, False, True),
        ({"crowded": True}, False, True),
        ({"behind": True}, False, True),
        ({"others": True}, False, True),
    ],
)
def test_a_poll_needs_no_other_reason_and_a_claim_needs_one(
    seen: dict[str, Any], may_poll: bool, may_find: bool
) -> None:
    made = wakeups(**seen)
    assert (made.may_poll(), made.may_find(100.0)) == (may_poll, may_find)


@pytest.mark.parametrize(
    ("seen", "then"),
    [
        ({"apart": False}, 101.0),
        ({"apart": True, "fanned_at": 99.5, "notes_at": 100.7}, 100.5),
        ({"apart": True, "fanned_at": 99.9, "notes_at": 100.7}, 100.7),
        ({"apart": True, "fanned_at": 100.0, "notes_at": 102.0}, 101.0),
    ],
)
def test_time_alone_is_a_reason_at_the_first_of_its_times(
    seen: dict[str, Any], then: float
) -> None:
    assert wakeups(**seen).next() == then


def test_after_a_look_that_finds_nothing_time_begins_anew() -> None:
    for apart, then in ((False, 103.0), (True, 100.0 + POLL_SECONDS)):
        made = wakeups(apart=apart)
        made.found_nothing(100.0, 3.0)
        assert (made.claim_at, made.next()) == (103.0, then)
        made.due_in(9.0)
        made.due_in(0.5)
        assert made.next() == 100.5
        made.look_soon()
        assert made.may_find(0.0)


def test_a_fan_out_that_failed_is_not_repeated_at_once() -> None:
    made = wakeups(apart=True, fanned_at=99.5)
    assert not made.may_fan_out(100.0)
    assert made.may_fan_out(99.5 + POLL_SECONDS)
    made.news, made.fan_out_at = True, 100.3
    assert [made.may_fan_out(at) for at in (100.0, 100.3)] == [False, True]


@pytest.mark.parametrize(
    ("every", "dense"), [(0.001, True), (0.002, True), (0.003, False), (0.005, False), (1.0, False)]
)
def test_turns_are_apart_while_events_are_dense(every: float, dense: bool) -> None:
    arrivals = Arrivals()
    now = 0.0
    for _ in range(40):
        now += every
        arrivals.hear(now)
    rests = [arrivals.rest(now, now + passed) for passed in (0.0, 0.001)]
    expected = [SPACING_SECONDS, SPACING_SECONDS - 0.001] if dense else [0.0, 0.0]
    assert rests == pytest.approx(expected)
    assert arrivals.rest(now - 1.0, now) <= 0


def test_a_few_events_at_once_are_not_dense() -> None:
    arrivals = Arrivals()
    for number in range(8):
        arrivals.hear(100.0 + number / 10_000)
    assert arrivals.rest(100.0, 100.0) == 0
    assert arrivals.expect(100.005)
    assert not arrivals.expect(100.02)
