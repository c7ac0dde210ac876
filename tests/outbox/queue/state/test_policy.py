"""Decisions on attempts, without a database."""

from dataclasses import dataclass
from email.utils import formatdate
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from outbox.queue.state.policy import (
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
WAITS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
STATUS = {"success": 204, "throttled": 503, "http_3xx": 302, "http_4xx": 404, "http_5xx": 500}
NAMES = sorted(get_args(OutcomeName))
FAILURES = sorted(set(NAMES) - {"success", "aborted"})


@dataclass(frozen=True)
class Result:
    outcome: str
    status: int | None = None
    retry_after: str | None = None
    stale: bool = False


def decided(
    result: Result, tries: int = 0, dice: float = MIDDLE, waits: Schedule | None = None
) -> Decision:
    return decide(result, tries=tries, schedule=waits or Schedule(), dice=dice, now_wall_s=NOW)


def failed(name: str, retry_after: str | None = None) -> Result:
    return Result(name, STATUS.get(name), retry_after)


@pytest.mark.parametrize("name", FAILURES)
def test_ten_attempts_over_three_days_then_exhausted(name: str) -> None:
    decisions = [decided(failed(name), tries) for tries in range(10)]
    assert [decision.state for decision in decisions] == ["ready"] * 9 + ["exhausted"]
    assert [decision.delay_us for decision in decisions] == [*(w * SECOND for w in WAITS), None]
    assert all(decision.uses_try and not decision.disable for decision in decisions)
    # A failure of the proxy is none of the receiver.
    assert {decision.counts_as_failure for decision in decisions} == {name != "proxy_error"}
    assert {decision.reason for decision in decisions} == {name}


@pytest.mark.parametrize(
    ("result", "tries", "state", "delay", "fails", "disables", "window"),
    [
        (Result("success", 200), 3, "delivered", None, False, False, "grow"),
        (Result("http_4xx", 410), 0, "gone", None, True, True, "keep"),
        (Result("http_4xx", 410), 9, "gone", None, True, True, "keep"),
        # What was cut off is due at once and does not count, as on a connection that had closed.
        (Result("aborted"), 50, "ready", 0, False, False, "keep"),
        (Result("connect_error", stale=True), 2, "ready", 0, False, False, "keep"),
    ],
)
def test_what_is_no_plain_failure(
    result: Result, tries: int, state: str, delay: int | None, fails: bool, disables: bool,
    window: str,
) -> None:  # fmt: skip
    decision = decided(result, tries)
    assert (decision.state, decision.delay_us) == (state, delay)
    assert (decision.counts_as_failure, decision.disable) == (fails, disables)
    assert decision.window == window
    assert decision.uses_try == (state != "ready")


@given(st.sampled_from(FAILURES), st.integers(0, 8), st.floats(0, 1, exclude_max=True))
@example("timeout", 0, 0.0)
@example("timeout", 0, 1 - 2**-53)
def test_jitter_stays_within_a_fifth(name: str, tries: int, dice: float) -> None:
    delay = decided(failed(name), tries, dice).delay_us
    assert delay is not None
    base = WAITS[tries] * SECOND
    assert 0.8 * base - 1 <= delay <= 1.2 * base + 1
    assert dice or delay == 0.8 * base


def test_a_webhook_may_have_its_own_schedule() -> None:
    for waits, ends in (((1.0,), ["ready", "exhausted"]), ((), ["exhausted", "exhausted"])):
        states = [decided(failed("timeout"), n, waits=Schedule(waits)).state for n in (0, 1)]
        assert states == ends


def test_the_window_halves_on_timeout_throttle_and_connect_failure() -> None:
    halving = {name for name in NAMES if decided(failed(name), 9).window == "halve"}
    connecting = {"connect_error", "dns_error", "tls_error", "proxy_error", "token_error"}
    assert halving == {"timeout", "throttled", *connecting}


@pytest.mark.parametrize(
    ("asked", "tries", "delay", "webhook"),
    [
        ("600", 0, 600, 600),
        # It never shortens the schedule, a delivery waits for a day and a webhook 15 minutes.
        ("1", 3, 7200, 1), ("1000000000", 0, DAY, 900), ("60", 9, None, 60),
    ],
)  # fmt: skip
def test_retry_after_delays_the_delivery_and_the_webhook(
    asked: str, tries: int, delay: int | None, webhook: int
) -> None:
    decision = decided(failed("throttled", asked), tries)
    assert decision.delay_us == (None if delay is None else delay * SECOND)
    assert decision.webhook_wait_us == webhook * SECOND
    for name in set(FAILURES) - {"throttled", "token_error"}:
        assert decided(failed(name, asked)).webhook_wait_us is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("5", 5), (" 5 ", 5), ("0", 0), ("-1", 0), ("1000000000", DAY),
        ("999999999999999999", DAY), (formatdate(NOW + 90, usegmt=True), 90),
        (formatdate(NOW - 90, usegmt=True), 0), ("Fri, 31 Dec 9999 23:59:59 GMT", DAY),
        ("Thursday, 09-Oct-25 08:54:20 GMT", 60), ("Thu Oct  9 08:54:20 2025", 60),
    ],
)  # fmt: skip
def test_retry_after_in_seconds_and_as_a_date(value: str, seconds: float) -> None:
    assert retry_after(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        None, "", "soon", "5s", "1.5", "0x10", "1e3", "+5", "5, 6", "٥", "9" * 5000,
        "Thu, 99 Oct 2025 99:99:99 GMT", "Thu, 09 Foo 2025 08:54:20 GMT",
        "Sun, 06 Nov 9999999999 08:49", "Sun, 06 Nov 999999999999999 08:49:37 GMT",
    ],
)  # fmt: skip
def test_an_invalid_retry_after_is_ignored(value: str | None) -> None:
    assert retry_after(value, NOW) is None
    decision = decided(Result("throttled", 503, value))
    assert (decision.delay_us, decision.webhook_wait_us) == (5 * SECOND, None)


@pytest.mark.slow
@given(value=st.text(max_size=40), now=st.floats(0, 4e9))
@example(value="Thu, 00 Jan 0000 00:00:00 GMT", now=0.0)
@example(value="Mon, 01 Jan 99999 00:00:00 GMT", now=0.0)
def test_no_text_breaks_retry_after(value: str, now: float) -> None:
    seconds = retry_after(value, now)
    assert seconds is None or 0 <= seconds <= DAY


@pytest.mark.parametrize(
    ("result", "state", "delay"),
    [
        (failed("http_5xx"), "ready", 0), (failed("throttled", "120"), "ready", 120),
        (Result("success", 200), "delivered", None), (Result("http_4xx", 410), "gone", None),
    ],
)  # fmt: skip
def test_a_probe_uses_no_try(result: Result, state: str, delay: int | None) -> None:
    for tries in (0, 9):
        decision = probed(decided(result, tries))
        assert (decision.state, decision.uses_try) == (state, False)
        assert decision.delay_us == (None if delay is None else delay * SECOND)


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
