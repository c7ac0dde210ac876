"""Reads the header Prefer: whether a client wants what it sent to be refused when it is unknown."""

from collections.abc import Collection, Iterable

from aiohttp import web

from gateway.records.errors import Fault, Refusal
from gateway.records.record import MOST_NAMED, STRICT, refusal

APPLIED = "Preference-Applied"


def is_strict(request: web.Request) -> bool:
    """Return whether a request has `Prefer: handling=strict` (RFC 7240)."""
    lines = request.headers.getall("Prefer", None)
    return lines is not None and _handling(", ".join(lines)) == "strict"


def unasked(request: web.Request) -> list[str]:
    """Return the names in the query of a strict request whose operation has only a body."""
    return [*dict.fromkeys(request.query)] if request.query_string else []


def unknown(names: Collection[str], kind: str, known: Iterable[str]) -> Refusal:
    """Return the refusal of unknown names of a query; `kind` is what they name."""
    message = f"This {kind} is unknown; there are: {', '.join(known) or 'none'}."
    faults = [Fault(name[:64], f"unknown_{kind}", message) for name in [*names][:MOST_NAMED]]
    refused = refusal(faults)
    refused.facts["preference_applied"] = STRICT
    return refused


def _handling(text: str) -> str:
    """Return the value of the first `handling`: RFC 7240 ignores a second one."""
    for preference in text.split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "handling":
            return value.strip().strip('"').lower()
    return ""
