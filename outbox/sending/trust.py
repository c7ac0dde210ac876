"""Which authorities deliveries trust, and what a receiver asks for in the TLS handshake."""

import ssl
from functools import cache, partial
from typing import Any

from outbox.sending.client_certificates import Trust
from outbox.sending.wire import Progress, current

HANDSHAKE, CERTIFICATE_REQUEST = 22, 13
"""The types of a record and of a message (RFC 5246, 6.2.1 and 7.4)."""
RECORD_HEAD, MESSAGE_HEAD = 5, 4
LARGEST_FLIGHT = 64 * 1024


class CannotTrust(ValueError):
    """A file of authorities that cannot be used; the text says why."""


def trust_of(ca_file: str = "") -> Trust:
    """Return what makes contexts that trust the system's authorities and those of a file."""
    return partial(_context, ca_file) if ca_file else ssl.create_default_context


def must_be_authorities(ca_file: str) -> None:
    """Raise CannotTrust unless a file has certificates of authorities in PEM."""
    _load(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ca_file)


@cache
def shared(ca_file: str) -> ssl.SSLContext:
    """Return one context for all requests without a client certificate: it takes time to make."""
    return prepared(trust_of(ca_file)())


def prepared(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a context whose handshakes are HTTP/1.1, and note what the receiver asks for."""
    context.set_alpn_protocols(("http/1.1",))
    context.sslobject_class = _Handshake
    return context


def _context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    _load(context, ca_file)
    return context


def _load(context: ssl.SSLContext, ca_file: str) -> None:
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError:
        raise CannotTrust(f"{ca_file} has no certificate in PEM, or a damaged one") from None
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise CannotTrust(f"{ca_file} cannot be read: {why}") from None


class _Handshake(ssl.SSLObject):
    """A TLS connection that notes in its attempt whether the receiver asks for a certificate.

    Until TLS 1.2 a receiver that misses one sends an alert with many meanings, or hangs up. Its
    request is plain there; in TLS 1.3 the alert says `certificate required`.
    """

    _flight: bytearray | None
    _incoming: ssl.MemoryBIO
    _left: int
    _progress: Progress | None

    @classmethod
    def _create(cls, incoming: ssl.MemoryBIO, *others: Any, **named: Any) -> Any:
        # The only place where the connection's buffer is handed over.
        made = super()._create(incoming, *others, **named)  # type: ignore[misc] # of the library
        made._incoming, made._flight, made._left = incoming, bytearray(), 0
        made._progress = current.get(None)
        return made

    def do_handshake(self) -> None:
        if self._flight is not None:
            self._look(self._flight)
        try:
            super().do_handshake()
        finally:
            self._left = self._incoming.pending
        self._flight = self._progress = None

    def _look(self, flight: bytearray) -> None:
        data = self._incoming.read()
        self._incoming.write(data)
        flight += data[self._left :]
        if self._progress is not None and requests_certificate(bytes(flight)):
            self._progress.asked = True
        if len(flight) > LARGEST_FLIGHT:
            self._flight = None


def requests_certificate(flight: bytes) -> bool:
    """Return whether the plain handshake of a receiver has a CertificateRequest."""
    messages, at = bytearray(), 0
    while at + RECORD_HEAD <= len(flight) and flight[at] == HANDSHAKE:
        length = int.from_bytes(flight[at + 3 : at + RECORD_HEAD])
        messages += flight[at + RECORD_HEAD : at + RECORD_HEAD + length]
        at += RECORD_HEAD + length
    at = 0
    while at + MESSAGE_HEAD <= len(messages):
        if messages[at] == CERTIFICATE_REQUEST:
            return True
        at += MESSAGE_HEAD + int.from_bytes(messages[at + 1 : at + MESSAGE_HEAD])
    return False
