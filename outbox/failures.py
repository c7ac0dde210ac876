"""What to call an attempt that got no answer: a name of the closed list and a few words."""

import os

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
)
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.streams import EofStream

from outbox.states import OutcomeName
from outbox.wire import HeadTooLong, Trail

CLOSED_EARLY = "the receiver closed the connection without an answer"
CUT_OFF = "the receiver closed the connection inside the head of its answer"


def gone_stale(trail: Trail) -> bool:
    """Whether a kept-alive connection turned out to be closed, with no byte answered."""
    wire = trail.wire
    return wire is not None and wire.uses > 1 and not wire.received and trail.head is None


def name_failure(error: Exception, trail: Trail) -> tuple[OutcomeName, str]:
    """The outcome of an attempt that got no answer, and what to call it."""
    if trail.refused is not None:
        return "blocked", str(trail.refused)
    if isinstance(error, TimeoutError):
        return _late(trail)
    if trail.stage == "answer":
        return _broken(error, trail)
    if isinstance(error, ClientConnectorDNSError):
        return "dns_error", str(error.os_error)
    if isinstance(error, ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", None)
        return "tls_error", f"certificate refused: {reason or 'it does not fit the host'}"
    if isinstance(error, ClientConnectorSSLError):
        reason = getattr(error.os_error, "reason", None) or "handshake failed"
        return "tls_error", f"TLS: {str(reason).lower().replace('_', ' ')}"
    if trail.stage == "tls":
        return "tls_error", "the receiver closed the connection inside the TLS handshake"
    if isinstance(error, ClientConnectorError):
        return "connect_error", _system(error.os_error)
    if isinstance(error, OSError):
        return "connect_error", _system(error)
    return "connect_error", f"the request failed inside: {type(error).__name__}"


def _late(trail: Trail) -> tuple[OutcomeName, str]:
    if trail.stage == "dns":
        return "dns_error", "the name servers did not answer in time"
    if trail.stage == "connect":
        return "connect_error", "no connection in time"
    if trail.stage == "tls":
        return "tls_error", "the TLS handshake did not end in time"
    return "timeout", "no answer in time"


def _broken(error: Exception, trail: Trail) -> tuple[OutcomeName, str]:
    if isinstance(error, HttpProcessingError):
        cause = error if isinstance(error, HeadTooLong) else error.__cause__
        if isinstance(cause, HeadTooLong | LineTooLong):
            return "protocol_error", "the head of the answer is too long"
        return "protocol_error", "not an HTTP/1.1 answer"
    if isinstance(error, ClientError | OSError | EofStream):
        wire = trail.wire
        if wire is not None and wire.received:
            return "protocol_error", CUT_OFF
        return "connect_error", CLOSED_EARLY
    return "protocol_error", f"the request failed inside: {type(error).__name__}"


def _system(error: OSError) -> str:
    """The system's own words, without the addresses that asyncio adds to them."""
    if error.errno is None:
        return "no connection"
    return os.strerror(error.errno).lower()
