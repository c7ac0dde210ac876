"""The handshake of the CloudEvents webhook specification, section 4: may this sender send here?

An OPTIONS request names the sender. Only the header WebHook-Allowed-Origin permits; the status says
nothing, because many servers answer OPTIONS with 200 by themselves.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from outbox.sending.outcome import Outcome
from outbox.sending.request import REQUEST_ORIGIN, Header, Request

METHOD = "OPTIONS"
REQUEST_RATE = "WebHook-Request-Rate"
ALLOWED_ORIGIN = "webhook-allowed-origin"
ALLOWED_RATE = "webhook-allowed-rate"
ANY = "*"
RATE = re.compile("0*([1-9][0-9]*)", re.ASCII)
MOST_DIGITS = 9
UNSHOWN = re.compile(r"[^\x20-\x7e]")
PER_MINUTE = 60
THOUSAND = 1_000
LONGEST_SHOWN = 80
GONE = 410


@dataclass(frozen=True, slots=True)
class Permission:
    """An answer to a handshake about one version of a webhook's settings.

    `rate` is in requests per 1,000 seconds, None without a limit.
    """

    version: int
    granted: bool
    rate: int | None = None


class Refused(Exception):
    """The receiver does not allow requests; the text says what its answer lacks."""


def question(request: Request, service: str) -> list[Header]:
    """Return the headers of the OPTIONS request before `request`.

    Headers of the webhook go with it, because gateways ask for their keys before anything else.
    """
    assert request.asks_as is not None
    rate = max(request.asks_rate * PER_MINUTE // THOUSAND, 1)
    wanted = [(REQUEST_RATE, str(rate))] if request.asks_rate else []
    return [
        (REQUEST_ORIGIN, request.asks_as),
        *wanted,
        ("User-Agent", f"{service}-Webhook/1.0"),
        *request.headers,
    ]


def read(headers: Sequence[Header], asker: str) -> int | None:
    """Return the rate that a response with these headers allows; None without a limit.

    Raise Refused.
    """
    origins = _values(headers, ALLOWED_ORIGIN)
    if not origins:
        raise Refused("it has no WebHook-Allowed-Origin")
    if not any(origin == ANY or origin.lower() == asker.lower() for origin in origins):
        raise Refused(f"its WebHook-Allowed-Origin is {_shown(origins)}")
    rates = _values(headers, ALLOWED_RATE)
    if not rates or rates == [ANY]:
        return None
    match = RATE.fullmatch(rates[0])
    if match is None or len(rates) > 1:
        raise Refused(
            f"its WebHook-Allowed-Rate is {_shown(rates)}, neither * nor a whole number above 0"
        )
    digits = match[1] if len(match[1]) <= MOST_DIGITS else "9" * MOST_DIGITS
    return max(int(digits) * THOUSAND // PER_MINUTE, 1)


def refusal(outcome: Outcome, reason: str, asker: str) -> Outcome:
    """Return the outcome of an attempt before which the receiver did not allow requests."""
    if outcome.status is None:
        return replace(outcome, error=f"{METHOD}: {outcome.error}")
    error = f"the receiver does not allow requests from {asker}: "
    error += f"it answered {outcome.status} to {METHOD}, and {reason}"
    # A receiver that is gone, overloaded or broken is treated as after a delivery.
    own = outcome.status == GONE or outcome.outcome in ("throttled", "http_5xx")
    return replace(outcome, outcome=outcome.outcome if own else "not_permitted", error=error)


def _values(headers: Sequence[Header], name: str) -> list[str]:
    values = ",".join(value for key, value in headers if key.lower() == name)
    return [one for one in (part.strip() for part in values.split(",")) if one]


def _shown(values: Sequence[str]) -> str:
    text = UNSHOWN.sub("?", ", ".join(values))
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
