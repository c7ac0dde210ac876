"""Name the outcome of an attempt, by its status or by the way it failed."""

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorSSLError,
    ClientError,
    ClientOSError,
)
from aiohttp.streams import EofStream

from outbox.durations import SECOND
from outbox.sending.oddities import NOT_HTTP
from outbox.sending.proxies import ProxyFailed
from outbox.sending.response import SWITCHING_PROTOCOLS
from outbox.sending.wire import NotHttp, Progress
from outbox.states import OutcomeName

REQUEST_TIMEOUT = 408
THROTTLING = frozenset({429, 502, 503, 504})
CLOSED_EARLY = "the receiver closed the connection without a response"
ASKED = "the receiver asks for a client certificate, and the webhook has none"
MISSING = "certificate required"
"""What the alert of TLS 1.3 says."""
CUT_OFF = "the receiver closed the connection before the response headers were complete"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """The outcome of one attempt. Once returned, nothing changes it; a frozen one is slow.

    Durations are microseconds, None for a step that did not happen; a failed step lasted until the
    failure.
    """

    outcome: OutcomeName
    status: int | None = None
    error: str | None = None
    """A short description of the failure; None when the status is enough.

    Beside a status that decides it has what was odd about the response: see `decided`.
    """
    retry_after: str | None = None
    address: str | None = None
    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    first_byte_us: int | None = None
    """Time from the last byte of the request to the first byte of the response."""
    total_us: int
    response_headers: Sequence[tuple[str, str]] = ()
    response_body: bytes = b""
    truncated: bool = False
    reused: bool = False
    stale: bool = False
    """Whether a kept-alive connection was already closed, or ended with a 408 for being idle."""

    @property
    def failure(self) -> str | None:
        """Return why there is no valid response; None when the status decides."""
        return None if self.decided else self.error

    @property
    def decided(self) -> bool:
        """Return whether the status decides the attempt."""
        return decides(self.outcome, self.status)


def decides(outcome: str, status: int | None) -> bool:
    """Return whether an attempt with this outcome was decided by its status."""
    return status is not None and outcome not in ("protocol_error", "not_permitted")


def no_status(status: int) -> str:
    """Return why this status does not decide."""
    if status == SWITCHING_PROTOCOLS:
        return "the receiver switched protocols"
    return f"{NOT_HTTP}: the status {status:03} is not in 100 to 599"


def unanswered(outcome: OutcomeName, error: str, seconds: float) -> Outcome:
    """Return the outcome of an attempt that ended on this side, with no data about the receiver."""
    total = round(seconds * SECOND)
    return Outcome(outcome=outcome, error=error, total_us=total)


def judge(status: int) -> OutcomeName:
    """Return the outcome for a final status."""
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
    """Return whether a kept-alive connection was already closed, without a byte of a response."""
    wire = progress.wire
    return wire is not None and wire.uses > 1 and not wire.received and progress.head is None


def name_failure(error: Exception, progress: Progress) -> tuple[OutcomeName, str]:
    """Return the outcome and a description of an attempt without a response."""
    if progress.refused is not None:
        return "blocked", str(progress.refused)
    if isinstance(error, TimeoutError):
        return _late(progress)
    if isinstance(error, ProxyFailed):
        return "proxy_error", f"{error}{_asked_for(progress)}"
    if progress.stage == "answer":
        return _broken(error, progress)
    if isinstance(error, ClientConnectorDNSError):
        return "dns_error", str(error.os_error)
    if isinstance(error, ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", None)
        return "tls_error", f"certificate refused: {reason or 'it does not match the host'}"
    if progress.asked and progress.stage == "tls":
        alert = _alert(error)
        return "tls_error", f"{ASKED} ({alert})" if alert else ASKED
    if isinstance(error, ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or "handshake failed"
        return "tls_error", f"TLS: {str(reason).lower().replace('_', ' ')}"
    if progress.stage == "tls":
        return "tls_error", "the receiver closed the connection during the TLS handshake"
    if isinstance(error, OSError):
        return "connect_error", f"{system(error)}{_tried(progress)}"
    return "connect_error", f"internal error during the request: {type(error).__name__}"


def _late(progress: Progress) -> tuple[OutcomeName, str]:
    if progress.stage == "dns":
        return "dns_error", "the name servers did not respond in time"
    if progress.stage == "proxy":
        text = f"the proxy {progress.proxy} did not answer in time"
        return "proxy_error", f"{text}{_asked_for(progress)}"
    if progress.stage == "connect":
        return "connect_error", f"the connection timed out{_tried(progress)}"
    if progress.stage == "tls":
        return "tls_error", "the TLS handshake timed out"
    return "timeout", "no response in time"


def _broken(error: Exception, progress: Progress) -> tuple[OutcomeName, str]:
    if isinstance(error, NotHttp):
        return "protocol_error", str(error)
    if isinstance(error, ssl.SSLError | ClientOSError) and (alert := _alert(error)):
        # With TLS 1.3 a receiver refuses a client certificate after the handshake.
        return "tls_error", f"{ASKED} ({alert})" if MISSING in alert else alert
    if isinstance(error, ClientError | OSError | EofStream):
        wire = progress.wire
        if wire is not None and wire.received:
            lacks = None if wire.reading is None else wire.reading.lacks()
            return "protocol_error", lacks or CUT_OFF
        return "connect_error", CLOSED_EARLY
    return "protocol_error", f"internal error during the request: {type(error).__name__}"


def _alert(error: BaseException) -> str | None:
    """Return what the receiver's TLS objects to; None when it said nothing."""
    cause = error.__cause__ if isinstance(error.__cause__, ssl.SSLError) else error
    reason = str(getattr(cause, "reason", None) or "") if isinstance(cause, ssl.SSLError) else ""
    if "ALERT" not in reason:
        return None
    return f"TLS: {reason.lower().replace('_', ' ')}"


def _tried(progress: Progress) -> str:
    """Return the addresses that were tried, each with its own failure if they differ."""
    tried = progress.tried
    if not tried:
        return ""
    if len(set(tried.values())) == 1:
        return f" (tried {', '.join(tried)})"
    each = [f"{place}: {why or 'no answer'}" for place, why in tried.items()]
    return f" (tried {', '.join(each)})"


def _asked_for(progress: Progress) -> str:
    """Return the addresses that a proxy was asked for, if they were several."""
    tried = progress.tried or ()
    return f" (asked for {', '.join(tried)})" if len(tried) > 1 else ""


def system(error: OSError) -> str:
    """Return the system's error text, without the addresses that asyncio adds."""
    if error.errno is None:
        return "no connection"
    return os.strerror(error.errno).lower()
