"""What came of one attempt, and what to call it: by its status, or by how it failed."""

import os
from dataclasses import dataclass

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
)
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import EofStream

from outbox.sending.wire import HeadTooLong, Progress
from outbox.states import OutcomeName

THROTTLING = frozenset({429, 502, 503, 504})
CLOSED_EARLY = "the receiver closed the connection without an answer"
CUT_OFF = "the receiver closed the connection inside the head of its answer"


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


def gone_stale(progress: Progress) -> bool:
    """Whether a kept-alive connection turned out to be closed, with no byte answered."""
    wire = progress.wire
    return wire is not None and wire.uses > 1 and not wire.received and progress.head is None


def name_failure(error: Exception, progress: Progress) -> tuple[OutcomeName, str]:
    """The outcome of an attempt that got no answer, and what to call it."""
    if progress.refused is not None:
        return "blocked", str(progress.refused)
    if isinstance(error, TimeoutError):
        return _late(progress)
    if progress.stage == "answer":
        return _broken(error, progress)
    if isinstance(error, ClientConnectorDNSError):
        return "dns_error", str(error.os_error)
    if isinstance(error, ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", None)
        return "tls_error", f"certificate refused: {reason or 'it does not fit the host'}"
    if isinstance(error, ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or "handshake failed"
        return "tls_error", f"TLS: {str(reason).lower().replace('_', ' ')}"
    if progress.stage == "tls":
        return "tls_error", "the receiver closed the connection inside the TLS handshake"
    if isinstance(error, ClientConnectorError):
        return "connect_error", _system(error.os_error)
    if isinstance(error, OSError):
        return "connect_error", _system(error)
    return "connect_error", f"the request failed inside: {type(error).__name__}"


def _late(progress: Progress) -> tuple[OutcomeName, str]:
    if progress.stage == "dns":
        return "dns_error", "the name servers did not answer in time"
    if progress.stage == "connect":
        return "connect_error", "no connection in time"
    if progress.stage == "tls":
        return "tls_error", "the TLS handshake did not end in time"
    return "timeout", "no answer in time"


def _broken(error: Exception, progress: Progress) -> tuple[OutcomeName, str]:
    if isinstance(error, HttpProcessingError):
        cause = error if isinstance(error, HeadTooLong) else error.__cause__
        if isinstance(cause, HeadTooLong | LineTooLong):
            return "protocol_error", "the head of the answer is too long"
        return "protocol_error", "not an HTTP/1.1 answer"
    if isinstance(error, ClientError | OSError | EofStream):
        wire = progress.wire
        if wire is not None and wire.received:
            return "protocol_error", CUT_OFF
        return "connect_error", CLOSED_EARLY
    return "protocol_error", f"the request failed inside: {type(error).__name__}"


def _system(error: OSError) -> str:
    """The system's own words, without the addresses that asyncio adds to them."""
    if error.errno is None:
        return "no connection"
    return os.strerror(error.errno).lower()
