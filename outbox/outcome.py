"""What came of one attempt, as worker, log and metrics know it."""

from dataclasses import dataclass

from outbox.states import OutcomeName

THROTTLING = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one attempt.

    Durations are microseconds, None where a step did not happen; one that failed lasted till then.
    """

    outcome: OutcomeName
    status: int | None
    error: str | None
    """A few words naming what went wrong; None when the status says it all."""
    retry_after: str | None
    address: str | None
    dns_us: int | None
    connect_us: int | None
    tls_us: int | None
    first_byte_us: int | None
    """From the request's last byte written to the answer's first byte read."""
    total_us: int
    response_headers: list[tuple[str, str]]
    response_body: bytes
    truncated: bool
    reused: bool
    stale: bool = False
    """Whether a kept-alive connection turned out to be closed: nothing was answered on it."""


def unanswered(outcome: OutcomeName, error: str, seconds: float) -> Outcome:
    """An attempt that ended on our side, with nothing known of the receiver."""
    total = round(seconds * 1_000_000)
    return Outcome(
        outcome, None, error, None, None, None, None, None, None, total, [], b"", False, False
    )


def judge(status: int) -> OutcomeName:
    """The outcome that a final status stands for."""
    if 200 <= status < 300:
        return "success"
    if status in THROTTLING:
        return "throttled"
    if 300 <= status < 400:
        return "http_3xx"
    if 400 <= status < 500:
        return "http_4xx"
    if 500 <= status < 600:
        return "http_5xx"
    return "protocol_error"
