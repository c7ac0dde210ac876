"""Reads the header X-API-Version, a date that selects the behaviour of the API.

A change of behaviour that the schema cannot express gets a date in RELEASES. A request with a
version gets every change up to that date; a request without one gets all.
"""

import re
from datetime import date

from multidict import MultiMapping

from gateway.records.errors import Fault, Refusal

HEADER = "X-API-Version"
RELEASES = ("2026-01-01", "2026-11-01")
"""The dates of behaviour, in order; the first is the baseline.

2026-11-01: a cart limits a quantity above the stock and warns; before, it refuses the quantity.
"""
_SHAPE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def effective(headers: MultiMapping[str]) -> str:
    """Return the release that a request selects: the newest one up to its version.

    The newest of all without the header, the oldest for an earlier date. Raises
    invalid_api_version.
    """
    if HEADER not in headers:
        return RELEASES[-1]
    # A repeated header is one list (RFC 9110, 5.3), which is not a date.
    version = ", ".join(headers.getall(HEADER)).strip()
    if not _SHAPE.fullmatch(version) or not _exists(version):
        message = "Send a date such as 2026-11-01, or omit the header for the newest behaviour."
        raise Refusal(
            "invalid_api_version", f"{HEADER}: {message}",
            faults=[Fault(HEADER, "invalid_date", message)],
        )  # fmt: skip
    return max((release for release in RELEASES if release <= version), default=RELEASES[0])


def _exists(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True
