"""Judge the responses to a check: what the receiver did, and what that means.

A finding has a code and facts; whoever shows it has the sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from outbox.durations import SECOND
from outbox.sending.outcome import Outcome
from outbox.worker.certification.checks import Check
from outbox.worker.certification.posts import Post

Verdict = Literal["passed", "warning", "unjudged", "failed"]
Code = Literal[
    "ok", "accepted", "refused", "gone", "redirect", "limited", "overloaded", "crashed", "late",
    "closed", "broken", "unreachable", "not_sent", "out_of_time", "slow", "endless", "told",
    "key_text", "key_without_prefix", "key_empty", "body_alone", "hexadecimal", "github_key",
    "reserialized",
]  # fmt: skip
RANKS: Sequence[Verdict] = ("passed", "unjudged", "warning", "failed")
"""From the best to the worst; the worst response to a check is the one that is reported."""
GONE, TOO_MANY = 410, 429
SLOW_SECONDS = 5.0
SLOW_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Tried:
    """A post and its outcome; `cut` when the time of the certification ended it."""

    post: Post
    outcome: Outcome
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found, with what the worst response to it was."""

    check: str
    verdict: Verdict
    code: Code
    status: int | None = None
    error: str | None = None
    micros: int | None = None
    """From the request to the response; the longest of several."""
    event: str | None = None
    sent: int = 0
    wrong: int = 0


def judge(check: Check, tried: Sequence[Tried], timeout_s: float) -> Finding:
    """Return what the responses to a check show."""
    judged = [(_weighed(*_of(trial, check), mild=check.mild), trial) for trial in tried]
    (verdict, code), worst = max(judged, key=lambda pair: RANKS.index(pair[0][0]))
    waited = longest(tried)
    if check.crowded and verdict == "passed" and _is_slow(waited, timeout_s):
        verdict, code = "warning", "slow"
    return Finding(
        check=check.name,
        verdict=verdict,
        code=code,
        status=worst.outcome.status,
        error=worst.outcome.failure,
        micros=waited,
        event=worst.post.value("x-webhook-event") or None,
        sent=len(tried),
        wrong=sum(found != "passed" for (found, _), _ in judged),
    )


def _weighed(verdict: Verdict, code: Code, *, mild: bool) -> tuple[Verdict, Code]:
    return ("warning" if mild and verdict == "failed" else verdict), code


def _of(trial: Tried, check: Check) -> tuple[Verdict, Code]:
    """Return what one response means."""
    outcome, name, status = trial.outcome, trial.outcome.outcome, trial.outcome.status
    if trial.cut:
        return "unjudged", "out_of_time"
    if name == "success":
        return ("passed", "ok") if check.accepts else ("failed", "accepted")
    if name in ("blocked", "dns_error", "tls_error", "aborted") or outcome.address is None:
        return "unjudged", "unreachable"
    if status == TOO_MANY or (check.crowded and name == "throttled"):
        # A webhook sends fewer at once then, so nothing is lost.
        return ("warning" if check.crowded else "unjudged"), "limited"
    return _of_accepted(outcome) if check.accepts else _of_refused(outcome)


def _of_accepted(outcome: Outcome) -> tuple[Verdict, Code]:
    """Return what is wrong with a response to a request that must be accepted."""
    if outcome.outcome == "http_4xx":
        return "failed", ("gone" if outcome.status == GONE else "refused")
    return "failed", ("overloaded" if outcome.outcome == "throttled" else _failure(outcome))


def _of_refused(outcome: Outcome) -> tuple[Verdict, Code]:
    """Return what a response means to a request that must be refused, and was not accepted."""
    if outcome.outcome == "http_4xx":
        return ("warning", "gone") if outcome.status == GONE else ("passed", "ok")
    code = "crashed" if outcome.outcome == "throttled" else _failure(outcome)
    return ("warning" if code == "closed" else "failed"), code


def _failure(outcome: Outcome) -> Code:
    codes: Mapping[str, Code] = {
        "connect_error": "closed", "http_3xx": "redirect", "http_5xx": "crashed", "timeout": "late",
    }  # fmt: skip
    return codes.get(outcome.outcome, "broken")


def _is_slow(waited: int | None, timeout_s: float) -> bool:
    return waited is not None and waited > min(SLOW_SECONDS, timeout_s * SLOW_SHARE) * SECOND


def longest(tried: Iterable[Tried]) -> int | None:
    """Return the longest time from a request to its response."""
    waits = (one.outcome.first_byte_us for one in tried)
    return max((wait for wait in waits if wait is not None), default=None)


def quick(tried: Sequence[Tried], timeout_s: float) -> Finding:
    """Judge how long accepted requests took, one at a time."""
    waited = longest(one for one in tried if one.outcome.outcome == "success")
    if _is_slow(waited, timeout_s):
        return Finding("quick", "warning", "slow", micros=waited, sent=len(tried))
    return Finding("quick", "passed", "ok", micros=waited, sent=len(tried))


def response_ends(tried: Sequence[Tried]) -> Finding:
    """Judge whether the bodies of accepted requests end, within a second and 16 KiB."""
    open_ends = [one for one in tried if one.outcome.outcome == "success" and one.outcome.truncated]
    if not open_ends:
        return Finding("response_ends", "passed", "ok", sent=len(tried))
    status = open_ends[0].outcome.status
    return Finding(
        "response_ends", "warning", "endless", status, sent=len(tried), wrong=len(open_ends)
    )


def silent(told: Sequence[Tried], sent: int) -> Finding:
    """Report responses that tell the secret or a right signature to whoever asks."""
    if not told:
        return Finding("silent", "passed", "ok", sent=sent)
    status = told[0].outcome.status
    return Finding("silent", "failed", "told", status, sent=sent, wrong=len(told))
