"""Decisions on attempts, without a database."""

from dataclasses import dataclass
from email.utils import formatdate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outbox.queue.state.policy import (
    Decision,
    Schedule,
    decide,
    parse_schedule,
    rescued,
    retry_after,
)

NOW = 1_760_000_000.0
SECOND = 1_000_000
MIDDLE = 0.5
DAY = 86_400


@dataclass(frozen=True)
class Result:
    outcome: str
    status: int | None = None
    retry_after: str | None = None
    stale: bool = False


def decided(result: Result, tries: int = 0, dice: float = MIDDLE) -> Decision:
    return decide(result, tries=tries, schedule=Schedule(), dice=dice, now_wall_s=NOW)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5),
        (" 5 ", 5),
        ("0", 0),
        ("-1", 0),
        ("1000000000", DAY),
        ("999999999999999999", DAY),
        (formatdate(NOW + 90, usegmt=True), 90),
        (formatdate(NOW - 90, usegmt=True), 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", DAY),
        ("Thursday, 09-Oct-25 08:54:20 GMT", 60),
        ("Thu Oct  9 08:54:20 2025", 60),
    ],
)
def test_retry_after_in_seconds_and_as_a_date(value: str, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "soon",
        "5s",
        "1.5",
        "0x10",
        "1e3",
        "+5",
        "5, 6",
        "٥",
        "9" * 5000,
        "Thu, 99 Oct 2025 99:99:99 GMT",
        "Thu, 09 Foo 2025 08:54:20 GMT",
    ],
)
def test_an_invalid_retry_after_is_ignored(value: str | None) -> None:
    assert retry_after(value, NOW) is None
    decision = decided(Result("throttled", 503, value))
    assert decision.delay_us == 5 * SECOND
    assert decision.webhook_wait_us is None


@given(value=st.text(max_size=40), now=st.floats(0, 4e9))
@example(value="Thu, 00 Jan 0000 00:00:00 GMT", now=0.0)
@example(value="Mon, 01 Jan 99999 00:00:00 GMT", now=0.0)
def test_no_text_breaks_retry_after(value: str, now: float) -> None:
    seconds = retry_after(value, now)
    assert seconds is None or 0 <= seconds <= DAY


def test_a_connection_that_had_been_closed_costs_no_try_and_waits_for_nothing() -> None:
    decision = decide(
        Result("connect_error", stale=True),
        tries=2, schedule=Schedule(), dice=0.5, now_wall_s=0.0,
    )  # fmt: skip
    assert (decision.state, decision.delay_us, decision.uses_try) == ("ready", 0, False)
    assert (decision.window, decision.counts_as_failure) == ("keep", False)


def test_an_out_of_range_date_is_ignored() -> None:
    for date in ("Sun, 06 Nov 9999999999 08:49", "Sun, 06 Nov 999999999999999 08:49:37 GMT"):
        assert retry_after(date, NOW) is None


def test_a_rescue_past_the_end_of_a_schedule_waits_as_by_the_default_one() -> None:
    short = rescued(4, "kill", schedule=Schedule((1.0,)), dice=MIDDLE)
    assert short.delay_us == 7200 * SECOND


@pytest.mark.parametrize("text", ["[-1]", "[2592000.5]", "[true]", '["5"]', "{}", "5", "null"])
def test_other_schedules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a schedule must be a list of seconds"):
        parse_schedule(text)
