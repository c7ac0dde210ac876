"""Get an access token for a webhook by the client credentials grant: RFC 6749, section 4.4.

It is one POST by the sender of the deliveries, so that the same guard, look-ups, limits and
deadlines apply, and no redirect is followed. What a token endpoint says reaches the log without
the secrets that it may repeat.
"""

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import msgspec

from outbox.clock import Clock
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.outcome import Outcome
from outbox.sending.request import DIRECT, MASK, Request, Via
from outbox.sending.response_body import show
from outbox.sending.send import Sender
from outbox.sending.urls import same_server

USUAL_LIFE = 3600.0
"""Seconds that a token is used whose endpoint does not say how long it lasts."""
LONGEST_LIFE = 86_400.0
RENEWED_EARLY, RENEWED_SHARE = 60.0, 4
"""A token is renewed so many seconds before its end, or in this part of a shorter life."""
ENDS_EARLY, ENDS_SHARE = 10.0, 10
"""So many seconds before its end no request starts with a token, or in this part of its life."""
LONGEST_SAID = 300
"""Characters of what a token endpoint says."""
LONGEST_START = 80
SHORTEST_SECRET = 4
"""Characters of a secret that is masked: the text would be masked with a shorter one."""
USABLE = re.compile(r"[\x21-\x7e]+")
NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")
TITLE = re.compile(r"<title[^>]{0,200}>([^<]{1,200})", re.IGNORECASE)
SAID = (
    ("error", "code", "errorCode"),
    ("error_description", "message", "errorSummary", "errorMessage", "detail", "title"),
)
"""Where token endpoints name an error, and where they describe it."""
BEGINS = "the token endpoint"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token with its times on the monotonic clock: when it came, and when it is renewed and ends.

    `life`: the seconds that its endpoint has stated, None without any.
    """

    authorization: str = field(repr=False)
    """The value of the Authorization header."""
    since: float
    renewed_at: float
    ends_at: float
    life: float | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a token request has given: a token, or why there is none. `outcome` is the request's."""

    outcome: Outcome
    token: AccessToken | None = None
    failure: str = ""

    def refusal(self) -> Outcome:
        """Return the outcome of a delivery that cannot be sent without the token.

        It has nothing of the response: the log shows that of the receiver.
        """
        waits = self.outcome.outcome == "throttled"
        return Outcome(
            outcome="token_error",
            error=self.failure,
            total_us=self.outcome.total_us,
            retry_after=self.outcome.retry_after if waits else None,
        )


async def fetch(sender: Sender, clock: Clock, request: Request, service: str) -> Fetched:
    """Request a token for the receiver of `request`, within the timeout of its webhook."""
    credentials = request.oauth2
    assert credentials is not None
    headers, body = posted(credentials, service)
    via = _way(credentials, request)
    url, timeout = credentials.token_url, request.timeout_s
    outcome = await sender.send(url, headers, body, timeout, via=via)
    if outcome.stale:
        # The endpoint has closed an idle connection.
        outcome = await sender.send(url, headers, body, timeout, fresh=True, via=via)
    return read(credentials, outcome, clock.monotonic())


def posted(credentials: ClientCredentials, service: str) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of a token request."""
    headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        # Some endpoints answer in another form unless they are asked for this one.
        ("Accept", "application/json"),
        ("User-Agent", f"{service}-Webhook/1.0"),
    ]
    form = [("grant_type", "client_credentials")]
    if credentials.scope:
        form.append(("scope", credentials.scope))
    if credentials.audience:
        form.append(("audience", credentials.audience))
    form += credentials.parameters
    if credentials.client_authentication == "basic":
        headers.append(("Authorization", f"Basic {_basic(credentials)}"))
    else:
        form.append(("client_id", credentials.client_id))
        form.append(("client_secret", credentials.client_secret))
    return headers, urlencode(form).encode("ascii")


def read(credentials: ClientCredentials, outcome: Outcome, now: float) -> Fetched:
    """Read the response of a token endpoint; `now` is on the monotonic clock."""
    if outcome.status is None or not outcome.decided:
        why = (outcome.error or "no response").replace("the receiver", "it")
        return Fetched(outcome, failure=f"{BEGINS} failed: {why}")
    answered = f"{BEGINS} answered {outcome.status}"
    if outcome.outcome == "http_3xx":
        return Fetched(outcome, failure=f"{answered}, a redirect, which is not followed")
    text = show(outcome.response_headers, outcome.response_body, truncated=outcome.truncated).text
    values = _object(text)
    said = _said(values, text, credentials, in_full=outcome.outcome != "success")
    said = f": {said}" if said else ""
    if outcome.outcome != "success":
        return Fetched(outcome, failure=f"{answered}{said}")
    if values is None:
        instead = "an answer that is cut off" if outcome.truncated else "no JSON object"
        return Fetched(outcome, failure=f"{answered} with {instead}{said}")
    token, kind = values.get("access_token"), values.get("token_type")
    if not isinstance(token, str) or not token:
        return Fetched(outcome, failure=f"{answered} without an access token{said}")
    if isinstance(kind, str) and kind.strip().lower() not in ("", "bearer"):
        shown = _shown(kind, credentials, LONGEST_START)
        return Fetched(outcome, failure=f"{BEGINS} gave a token of the type {shown}, not Bearer")
    if not USABLE.fullmatch(token):
        return Fetched(outcome, failure=f"{BEGINS} gave a token that no header can have")
    life = life_of(values.get("expires_in"))
    lasts = USUAL_LIFE if life is None else min(life, LONGEST_LIFE)
    made = AccessToken(
        # Receivers exist that refuse another spelling of the scheme, as `bearer`.
        f"Bearer {token}", now, now + lasts - min(RENEWED_EARLY, lasts / RENEWED_SHARE),
        now + lasts - min(ENDS_EARLY, lasts / ENDS_SHARE), life,
    )  # fmt: skip
    return Fetched(outcome, made)


def life_of(value: object) -> float | None:
    """Return the seconds of `expires_in`, as a number or a text; None when it says nothing.

    Zero says nothing: some endpoints mean that the token does not end, and some give a token out
    again at its end.
    """
    if isinstance(value, str):
        value = float(value) if NUMBER.fullmatch(value := value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    return float(min(value, 10**12))


def _way(credentials: ClientCredentials, request: Request) -> Via:
    """Return the way to the token endpoint: by the proxy of the webhook, if it has one.

    The client certificate is for the receiver, and so for an endpoint on the same server only.
    """
    via = request.via
    if via.certificate is None or same_server(credentials.token_url, request.url):
        return via
    return DIRECT if via.proxy is None else replace(via, certificate=None)


def _basic(credentials: ClientCredentials) -> str:
    """Return id and secret for Basic, each encoded as in a form: RFC 6749, section 2.3.1.

    A space is `%20`, which both forms of decoding know; some servers take `+` for itself.
    """
    pair = ":".join(
        quote(one, safe="") for one in (credentials.client_id, credentials.client_secret)
    )
    return base64.b64encode(pair.encode("ascii")).decode("ascii")


def _object(text: str) -> Mapping[str, Any] | None:
    try:
        values = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _said(
    values: Mapping[str, Any] | None, text: str, credentials: ClientCredentials, *, in_full: bool
) -> str:
    """Return what an endpoint says, in one line; of an answer with success only an error.

    The rest of it may have a token.
    """
    if values is not None:
        nested = values.get("error")
        places = [values, nested] if isinstance(nested, dict) else [values]
        texts = [one for names in SAID if (one := _first(places, names))]
        return _shown(": ".join(dict.fromkeys(texts)), credentials, LONGEST_SAID)
    title = TITLE.search(text)
    if title is not None:
        return f"a page with the title “{_shown(title[1], credentials, LONGEST_START)}”"
    if text.lstrip()[:1] == "<":
        return "a page of HTML or XML"
    return _shown(text, credentials, LONGEST_START) if in_full else ""


def _first(places: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    values = (place.get(name) for name in names for place in places)
    return next((one for one in values if isinstance(one, str) and one.strip()), "")


def _shown(text: str, credentials: ClientCredentials, most: int) -> str:
    """Return a text in one line, without secrets."""
    for secret in _secrets(credentials):
        text = text.replace(secret, MASK)
    line = " ".join(text.split())[:most]
    return "".join(one if one.isprintable() else "\ufffd" for one in line)


def _secrets(credentials: ClientCredentials) -> Iterator[str]:
    yield _basic(credentials)
    for secret in (credentials.client_secret, *(value for _, value in credentials.parameters)):
        if len(secret) >= SHORTEST_SECRET:
            yield from (secret, quote_plus(secret), quote(secret, safe=""))
