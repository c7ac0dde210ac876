"""Reads what an owner limits or chooses for the requests of one webhook, as it is typed.

A fault has a code, so that each language has its own sentence for it.
"""

import re
from collections.abc import Collection

from gateway.records.errors import Fault
from outbox.sending import client_certificates
from outbox.sending.client_certificates import CertificateFault, ClientCertificate
from outbox.sending.request import MASK

MOST_AT_ONCE = 1_000
HIGHEST_RATE = 1_000
"""Requests per second."""
THOUSAND = 1_000

WHOLE = re.compile("[0-9]{1,4}", re.ASCII)
DECIMAL = re.compile(r"([0-9]{1,4})(?:[.,]([0-9]{1,3}))?", re.ASCII)

AT_ONCE = f"The requests at once must be a whole number from 1 to {MOST_AT_ONCE}."
RATE = f"The requests per second must be a number from 0.001 to {HIGHEST_RATE}, such as 5 or 0.5."
UNREADABLE = (
    "The stored certificate cannot be decrypted. Paste the certificate and its key again, or empty "
    "the field."
)
NEEDS_HTTPS = "A client certificate needs a URL that starts with https://."
OPERATIONAL = "Operational webhooks have no records, so they cannot send thin events."


def read_concurrency(text: str, faults: list[Fault]) -> int | None:
    """Return the requests at once; None for an empty text. Add to `faults` for a wrong one."""
    text = text.strip()
    if not text:
        return None
    if WHOLE.fullmatch(text) and 1 <= int(text) <= MOST_AT_ONCE:
        return int(text)
    faults.append(Fault("concurrency", "out_of_range", AT_ONCE))
    return None


def read_rate(text: str, faults: list[Fault]) -> int | None:
    """Return the requests per 1,000 seconds of a text with those of one second.

    None for an empty text. Add to `faults` for a wrong one.
    """
    text = text.strip()
    if not text:
        return None
    match = DECIMAL.fullmatch(text)
    rate = 0 if match is None else int(match[1]) * THOUSAND + int((match[2] or "0").ljust(3, "0"))
    if 1 <= rate <= HIGHEST_RATE * THOUSAND:
        return rate
    faults.append(Fault("rate", "out_of_range", RATE))
    return None


def written_rate(rate: int | None) -> str:
    """Return the text that `read_rate` reads as this rate."""
    return "" if rate is None else f"{rate / THOUSAND:.3f}".rstrip("0").rstrip(".")


def read_certificate(
    text: str, url: str, stored: ClientCertificate | None, now: int, faults: list[Fault]
) -> ClientCertificate | None:
    """Return the client certificate of a text in PEM; None for an empty one.

    `***` keeps `stored`. `now` is microseconds UTC. Add to `faults` for a wrong one.
    """
    text = text.strip()
    if not text:
        return None
    if not url.lower().startswith("https:"):
        faults.append(Fault("certificate", "needs_https", NEEDS_HTTPS))
        return None
    if text == MASK:
        if stored is None:
            faults.append(Fault("certificate", "unreadable", UNREADABLE))
        return stored
    try:
        return client_certificates.read(text, now)
    except CertificateFault as wrong:
        faults.append(Fault("certificate", wrong.code, str(wrong)))
        return None


def read_proxy(name: str, proxies: Collection[str], faults: list[Fault]) -> str | None:
    """Return the name of one of the operator's proxies; None for an empty one."""
    name = name.strip()
    if not name:
        return None
    if name in proxies:
        return name
    known = ", ".join(sorted(proxies)) or "none"
    faults.append(
        Fault("proxy", "unknown", f"There is no proxy {name[:40]!r}; the proxies are: {known}.")
    )
    return None
