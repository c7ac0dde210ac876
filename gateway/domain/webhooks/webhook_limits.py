"""Reads what an owner limits or chooses for the requests of one webhook, as it is typed.

A fault has a code, so that each language has its own sentence for it.
"""

import re
from collections.abc import Collection

from gateway.records.errors import Fault, Refusal
from gateway.records.values.formats import Wrong
from outbox.sending import client_certificates
from outbox.sending.client_certificates import CertificateFault, ClientCertificate
from outbox.sending.request import MASK

MOST_AT_ONCE = 1_000
HIGHEST_RATE = 1_000
"""Requests per second."""
THOUSAND = 1_000

DECIMAL = re.compile(r"([0-9]{1,4})(?:[.,]([0-9]{1,3}))?", re.ASCII)

AT_ONCE = "The requests at once must be a whole number from {least} to {most}."
RATE = "The requests per second must be a number from {least} to {most}, such as 5 or 0.5."
UNREADABLE = (
    "The stored certificate cannot be decrypted. Paste the certificate and its key again, or empty "
    "the field."
)
MOVED = (
    "The URL is on another server now; paste the certificate and its key again, or empty the field."
)
NEEDS_HTTPS = "A client certificate needs a URL that starts with https://."
OPERATIONAL = "Operational webhooks have no records, so they cannot send thin events."


def read_rate(text: str) -> int | None:
    """Return the requests per 1,000 seconds of a text with those of one second.

    None for an empty text. Raise Wrong.
    """
    text = text.strip()
    if not text:
        return None
    match = DECIMAL.fullmatch(text)
    rate = 0 if match is None else int(match[1]) * THOUSAND + int((match[2] or "0").ljust(3, "0"))
    if not 1 <= rate <= HIGHEST_RATE * THOUSAND:
        raise Wrong("out_of_range", RATE, least=1 / THOUSAND, most=HIGHEST_RATE)
    return rate


def written_rate(rate: int | None) -> str:
    """Return the text that `read_rate` reads as this rate."""
    return "" if rate is None else f"{rate / THOUSAND:.3f}".rstrip("0").rstrip(".")


def read_certificate(
    text: str, url: str, stored: ClientCertificate | None, *, moved: bool = False
) -> ClientCertificate | None:
    """Return the client certificate of a text in PEM; None for an empty one.

    `***` keeps `stored`, unless the webhook has `moved` to another server. Raise Wrong.
    """
    text = text.strip()
    if not text:
        return None
    if not url.lower().startswith("https:"):
        raise Wrong("needs_https", NEEDS_HTTPS)
    if text == MASK:
        if moved:
            raise Wrong("certificate_moved", MOVED)
        if stored is None:
            raise Wrong("unreadable", UNREADABLE)
        return stored
    try:
        return client_certificates.read(text)
    except CertificateFault as wrong:
        raise Wrong(wrong.code, wrong.text, **wrong.values) from None


def must_be_valid(certificate: ClientCertificate | None, now: int) -> None:
    """Raise validation_error for a new certificate that is not valid at `now`, microseconds UTC."""
    if certificate is None:
        return
    try:
        client_certificates.must_be_valid(certificate, now)
    except CertificateFault as wrong:
        fault = Fault("certificate", wrong.code, wrong.text, wrong.values)
        raise Refusal("validation_error", "The webhook was not saved.", faults=[fault]) from None


def read_proxy(name: str, proxies: Collection[str]) -> str | None:
    """Return the name of one of the operator's proxies; None for an empty one. Raise Wrong."""
    name = name.strip()
    if not name:
        return None
    if name not in proxies:
        known = ", ".join(sorted(proxies)) or "none"
        raise Wrong("unknown", f"There is no proxy {name[:40]!r}; the proxies are: {known}.")
    return name
