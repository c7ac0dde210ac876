"""Decide what an attempt's outcome means for its delivery and its webhook. Pure functions."""

import email.utils
import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Literal, Protocol

from outbox.durations import SECOND
from outbox.states import NOT_THE_RECEIVER, State

WindowStep = Literal["grow", "halve", "keep"]

DEFAULT_WAITS = (5.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0, 50400.0, 72000.0, 86400.0)
"""Seconds before attempts 2 to 10: ten attempts over three days."""
JITTER = 0.2
LONGEST_WAIT = 2_592_000.0
LONGEST_RETRY_AFTER = 86_400.0
UNREADABLE_WAIT = 15 * SECOND
"""Microseconds until a webhook whose secret cannot be decrypted is tried again."""
LONGEST_WEBHOOK_WAIT = 900.0
GONE = 410
MOST_RESCUES = 10
"""So many rescues in a row, without a recorded attempt between, end a delivery."""
RESCUES_AT_ONCE = 2
"""After so many rescues in a row a delivery is sent again at once."""
CONNECTING = frozenset({"connect_error", "dns_error", "tls_error", "proxy_error"})
SECONDS = re.compile(r"-?[0-9]{1,18}")
DATE = re.compile(r"[A-Za-z]{3,9},? [A-Za-z0-9 :-]{16,24}( GMT)?")


class Judged(Protocol):
    """The part of an attempt's outcome that the decision depends on."""

    @property
    def outcome(self) -> str: ...
    @property
    def status(self) -> int | None: ...
    @property
    def retry_after(self) -> str | None: ...
    @property
    def stale(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """Seconds to wait after each failed attempt; there is one attempt more than waits."""

    waits: tuple[float, ...] = DEFAULT_WAITS

    def wait(self, tries: int, dice: float) -> float | None:
        """Return seconds until the next attempt after `tries` failures and this one; None at the
        end.

        `dice` in [0, 1) varies the wait by up to 20 % in either direction.
        """
        if tries >= len(self.waits):
            return None
        return self.waits[tries] * (1 - JITTER + 2 * JITTER * dice)

    def preview(self) -> "list[Retry]":
        """Return when each retry follows a first attempt now, if all fail at once."""
        totals = accumulate(self.waits)
        return [
            Retry(number, total, total * (1 - JITTER), total * (1 + JITTER))
            for number, total in enumerate(totals, start=2)
        ]


@dataclass(frozen=True, slots=True)
class Retry:
    """When attempt `number` starts, in seconds after the first: the usual time and its range."""

    number: int
    usual: float
    earliest: float
    latest: float


def parse_schedule(text: str) -> Schedule:
    """Parse a webhook's own schedule, a JSON list of seconds. Raise ValueError if invalid."""
    waits = json.loads(text)
    if not isinstance(waits, list) or not all(
        isinstance(wait, int | float) and not isinstance(wait, bool) and 0 <= wait <= LONGEST_WAIT
        for wait in waits
    ):
        raise ValueError("a schedule must be a list of seconds")
    return Schedule(tuple(map(float, waits)))


@dataclass(frozen=True, slots=True)
class Decision:
    """The next state of the delivery and of its webhook. Times are in microseconds."""

    state: State
    reason: str
    delay_us: int | None = None
    """Time until the next attempt; None when there is none."""
    webhook_wait_us: int | None = None
    """Time that the webhook's other deliveries also wait; without an attempt, because it cannot
    sign: see `parked`."""
    disable: bool = False
    window: WindowStep = "keep"
    counts_as_failure: bool = False
    uses_try: bool = False
    """Whether the attempt counts against the schedule."""


DELIVERED = Decision("delivered", "success", window="grow", uses_try=True)


def decide(
    result: Judged, *, tries: int, schedule: Schedule, dice: float, now_wall_s: float
) -> Decision:
    """Decide after an attempt that followed `tries` attempts of the delivery's schedule.

    `now_wall_s` (seconds since the epoch) turns a Retry-After date into a delay.
    """
    outcome = result.outcome
    if outcome == "success":
        return DELIVERED
    if outcome == "aborted":
        # This node aborted the request, so the receiver is not the cause and no try is used.
        return again(outcome)
    if result.stale:
        # The receiver closed an idle connection, most likely before it received this request, or
        # refused an access token that another one replaces.
        return again(outcome)
    if result.status == GONE:
        return Decision("gone", "http_410", disable=True, counts_as_failure=True, uses_try=True)
    throttled = outcome in ("throttled", "token_error")
    requested = retry_after(result.retry_after, now_wall_s) if throttled else None
    webhook_wait = None
    if requested is not None:
        webhook_wait = _microseconds(min(requested, LONGEST_WEBHOOK_WAIT))
    halve = throttled or outcome == "timeout" or outcome in CONNECTING
    window: WindowStep = "halve" if halve else "keep"
    wait = schedule.wait(tries, dice)
    counts = outcome not in NOT_THE_RECEIVER
    if wait is None:
        return Decision(
            state="exhausted",
            reason=outcome,
            delay_us=None,
            webhook_wait_us=webhook_wait,
            disable=False,
            window=window,
            counts_as_failure=counts,
            uses_try=True,
        )
    delay = _microseconds(max(wait, requested or 0.0))
    return Decision(
        state="ready",
        reason=outcome,
        delay_us=delay,
        webhook_wait_us=webhook_wait,
        disable=False,
        window=window,
        counts_as_failure=counts,
        uses_try=True,
    )


def probed(decision: Decision) -> Decision:
    """Return what `decision` means for a delivery that was sent as a probe.

    It uses no try and never ends by a failure. After one it stands behind those that are due now,
    so that a delivery that the receiver will never accept cannot keep the circuit open.
    """
    if decision.state not in ("ready", "exhausted"):
        return replace(decision, uses_try=False)
    return replace(decision, state="ready", delay_us=decision.webhook_wait_us or 0, uses_try=False)


def again(reason: str) -> Decision:
    """Return a claimed but unsent delivery: ready at once, with no attempt used up."""
    return Decision("ready", reason, 0)


def parked(reason: str) -> Decision:
    """Return a claimed delivery whose webhook cannot sign: its whole lane waits, no try is used.

    The fault is in the installation, so that it never ends a delivery.
    """
    return Decision("ready", reason, 0, UNREADABLE_WAIT)


def rescued(times: int, what: str, *, schedule: Schedule, dice: float) -> Decision:
    """Decide after the `times`th rescue of a delivery in a row; `what` is what happened.

    The receiver is not the cause, so no try is used up, but a delivery that ends each process that
    sends it must not end them all: from the third rescue on it waits as long as after that many
    failed attempts. Past the end of its schedule, the default one applies.
    """
    reason = what if times == 1 else f"{what}, {times} times in a row"
    if times >= MOST_RESCUES:
        return dead(reason)
    if times <= RESCUES_AT_ONCE:
        return again(reason)
    wait = schedule.wait(times - 1, dice)
    if wait is None:
        wait = Schedule().wait(times - 1, dice)
    assert wait is not None
    return Decision("ready", reason, _microseconds(wait))


def dead(reason: str) -> Decision:
    """End a delivery that can never be sent, such as one without a body."""
    return Decision("dead", reason)


def cancelled(reason: str) -> Decision:
    """End a delivery that must not be sent any more."""
    return Decision("cancelled", reason)


def retry_after(value: str | None, now_wall_s: float) -> float | None:
    """Parse a Retry-After header as seconds within [0, 1 day]; return None if it is invalid.

    Whole seconds or an HTTP date: RFC 9110, section 10.2.3.
    """
    if value is None:
        return None
    text = value.strip()
    if SECONDS.fullmatch(text):
        seconds = float(text)
    elif DATE.fullmatch(text):
        try:
            parsed = email.utils.parsedate(text)
            if parsed is None:
                return None
            seconds = datetime(*parsed[:6], tzinfo=UTC).timestamp() - now_wall_s
        except (ValueError, OverflowError):
            return None
    else:
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def _microseconds(seconds: float) -> int:
    return round(seconds * SECOND)
