"""Decisions on attempts, without a database."""

from dataclasses import dataclass
from email.utils import formatdate
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outbox.queue.state.policy import (
    DEFAULT_WAITS,
    Decision,
    Schedule,
    decide,
    parse_schedule,
    probed,
    rescued,
    retry_after,
)
from outbox.states import OutcomeName

NOW = 1_760_000_000.0
SECOND = 1_000_000
MIDDLE = 0.5
DAY = 86_400

STATUS = {"success": 204, "throttled": 503, "http_3xx": 302, "http_4xx": 404, "http_5xx": 500}

NAMES = sorted(get_args(OutcomeName))

FAILURES = sorted(set(NAMES) - {"success", "aborted"})


@dataclass(frozen=True)
class Result:
    outcome: str
    status: int | None = None
    retry_after: str | None = None
    stale: bool = False


def decided(result: Result, tries: int = 0, dice: float = MIDDLE) -> Decision:
    return decide(result, tries=tries, schedule=Schedule(), dice=dice, now_wall_s=NOW)


def failed(name: str, retry_after: str | None = None) -> Result:
    return Result(name, STATUS.get(name), retry_after)


def test_a_success_delivers() -> None:
    decision = decided(Result("success", 200))
    assert decision.state == "delivered"
    assert decision.delay_us is None
    assert decision.window == "grow"
    assert not decision.counts_as_failure


@pytest.mark.parametrize("name", FAILURES)
def test_ten_attempts_over_three_days_then_exhausted(name: str) -> None:
    decisions = [decided(failed(name), tries) for tries in range(10)]
    assert [decision.state for decision in decisions] == ["ready"] * 9 + ["exhausted"]
    waits = [decision.delay_us for decision in decisions[:9]]
    assert waits == [wait * SECOND for wait in
                     (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)]  # fmt: skip
    assert decisions[9].delay_us is None
    assert all(decision.uses_try for decision in decisions)
    # A failure of the proxy is none of the receiver.
    assert {decision.counts_as_failure for decision in decisions} == {name != "proxy_error"}
    assert {decision.reason for decision in decisions} == {name}


@given(
    name=st.sampled_from(FAILURES), tries=st.integers(0, 8), dice=st.floats(0, 1, exclude_max=True)
)
def test_jitter_stays_within_a_fifth(name: str, tries: int, dice: float) -> None:
    delay = decided(failed(name), tries, dice).delay_us
    assert delay is not None
    base = DEFAULT_WAITS[tries] * SECOND
    assert 0.8 * base - 1 <= delay <= 1.2 * base + 1


def test_jitter_uses_all_of_its_room() -> None:
    assert decided(failed("timeout"), 0, 0.0).delay_us == 4 * SECOND
    assert decided(failed("timeout"), 0, 1 - 2**-53).delay_us == 6 * SECOND


def test_a_webhook_may_have_its_own_schedule() -> None:
    short = Schedule((1.0,))
    states = [
        decide(failed("timeout"), tries=tries, schedule=short, dice=MIDDLE, now_wall_s=NOW).state
        for tries in (0, 1, 2)
    ]
    assert states == ["ready", "exhausted", "exhausted"]
    only = decide(failed("timeout"), tries=0, schedule=Schedule(()), dice=MIDDLE, now_wall_s=NOW)
    assert only.state == "exhausted"


@pytest.mark.parametrize("tries", [0, 9])
def test_410_ends_the_delivery_and_disables_the_webhook(tries: int) -> None:
    decision = decided(Result("http_4xx", 410), tries)
    assert (decision.state, decision.disable, decision.delay_us) == ("gone", True, None)
    assert decision.counts_as_failure


@pytest.mark.parametrize("name", NAMES)
def test_nothing_else_disables(name: str) -> None:
    assert not decided(failed(name)).disable


@pytest.mark.parametrize("tries", [0, 9, 50])
def test_an_aborted_attempt_is_due_at_once_and_does_not_count(tries: int) -> None:
    decision = decided(Result("aborted"), tries)
    assert (decision.state, decision.delay_us) == ("ready", 0)
    assert not decision.uses_try
    assert not decision.counts_as_failure
    assert decision.window == "keep"


def test_the_window_halves_on_timeout_throttle_and_connect_failure() -> None:
    halving = {name for name in NAMES if decided(failed(name)).window == "halve"}
    connecting = {"connect_error", "dns_error", "tls_error", "proxy_error"}
    assert halving == {"timeout", "throttled", *connecting}
    assert decided(failed("timeout"), 9).window == "halve"


def test_retry_after_delays_the_delivery_and_the_webhook() -> None:
    decision = decided(failed("throttled", retry_after="600"))
    assert decision.delay_us == 600 * SECOND
    assert decision.webhook_wait_us == 600 * SECOND


def test_retry_after_never_shortens_the_schedule() -> None:
    decision = decided(failed("throttled", retry_after="1"), 3)
    assert decision.delay_us == 7200 * SECOND
    assert decision.webhook_wait_us == 1 * SECOND


def test_a_webhook_waits_at_most_15_minutes_and_a_delivery_a_day() -> None:
    decision = decided(failed("throttled", retry_after="1000000000"))
    assert decision.delay_us == DAY * SECOND
    assert decision.webhook_wait_us == 900 * SECOND


def test_the_last_attempt_still_delays_the_webhook() -> None:
    decision = decided(failed("throttled", retry_after="60"), 9)
    assert (decision.state, decision.webhook_wait_us) == ("exhausted", 60 * SECOND)


@pytest.mark.parametrize("name", sorted(set(FAILURES) - {"throttled"}))
def test_retry_after_counts_on_throttling_answers_only(name: str) -> None:
    decision = decided(failed(name, retry_after="600"))
    assert decision.delay_us == 5 * SECOND
    assert decision.webhook_wait_us is None


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


@pytest.mark.parametrize(("tries", "name"), [(0, "http_5xx"), (9, "http_5xx"), (9, "timeout")])
def test_a_failed_probe_is_due_again_and_uses_no_try(tries: int, name: str) -> None:
    decision = probed(decided(failed(name), tries))
    assert (decision.state, decision.delay_us, decision.uses_try) == ("ready", 0, False)


def test_a_probe_waits_as_long_as_its_receiver_asked() -> None:
    decision = probed(decided(failed("throttled", "120"), 9))
    assert (decision.state, decision.delay_us) == ("ready", 120 * SECOND)


@pytest.mark.parametrize(
    ("result", "state"), [(Result("success", 200), "delivered"), (Result("http_4xx", 410), "gone")]
)
def test_a_probe_that_settles_its_delivery_uses_no_try(result: Result, state: str) -> None:
    decision = probed(decided(result))
    assert (decision.state, decision.uses_try) == (state, False)


def test_rescues_in_a_row_wait_from_the_third_on_and_end_at_the_tenth() -> None:
    decisions = [rescued(n, "kill", schedule=Schedule(), dice=MIDDLE) for n in range(1, 11)]
    assert [decision.state for decision in decisions] == ["ready"] * 9 + ["dead"]
    assert [decision.delay_us for decision in decisions[:4]] == [0, 0, 1800 * SECOND, 7200 * SECOND]
    assert not any(decision.uses_try for decision in decisions)
    assert decisions[0].reason == "kill"
    assert decisions[9].reason == "kill, 10 times in a row"


def test_a_rescue_past_the_end_of_a_schedule_waits_as_by_the_default_one() -> None:
    short = rescued(4, "kill", schedule=Schedule((1.0,)), dice=MIDDLE)
    assert short.delay_us == 7200 * SECOND


@pytest.mark.parametrize("text", ["[-1]", "[2592000.5]", "[true]", '["5"]', "{}", "5", "null"])
def test_other_schedules_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a schedule must be a list of seconds"):
        parse_schedule(text)
