"""Reads what a connect link asks for, and the proof of an app, by the rules of RFC 9700 (OAuth).

An app is one that the operator has registered. Until the app and its exact redirect URI are known,
a fault is told to the person and nobody is sent anywhere; later ones go back to the app.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode, urlsplit

from gateway.domain.webhooks import connecting
from gateway.domain.webhooks.connecting import Proof, Wish
from gateway.records.errors import Refusal
from outbox.ids import digest_of
from outbox.sending.addresses import Rules

FIELDS = (
    "response_type", "client_id", "redirect_uri", "state", "url", "events", "code_challenge",
    "code_challenge_method",
)  # fmt: skip
"""What a link has; the form of the page sends the same."""
PRINTABLE = re.compile(r"[\x20-\x7e]+")
CHALLENGE = re.compile("[A-Za-z0-9_-]{43}")
LONGEST_STATE = 512

NEEDED = ("code", "client_id", "redirect_uri", "code_verifier")
VALUE = re.compile(r"[\x21-\x7e]{1,2048}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")

Values = Callable[[str], Sequence[str]]
"""The values of a field, as often as it is there."""


class App(Protocol):
    """A registered app. `receivers` are the origins of its webhooks, in their normal spelling."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def redirect_uris(self) -> Sequence[str]: ...
    @property
    def receivers(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A link without a fault."""

    app: App
    wish: Wish
    state: str


class Faulty(Exception):
    """A fault that the app is told: an error code of RFC 6749 and a sentence in ASCII."""

    def __init__(self, redirect_uri: str, state: str, error: str, sentence: str) -> None:
        super().__init__(sentence)
        self.redirect_uri = redirect_uri
        self.state = state
        self.error = error


def read(values: Values, apps: Sequence[App], rules: Rules) -> Asked:
    """Return what is asked for. Raise validation_error for the person, Faulty for the app."""
    client, redirect_uri = (_once(values(name)) for name in ("client_id", "redirect_uri"))
    app = next((app for app in apps if app.id == client), None)
    if app is None:
        raise Refusal("validation_error", "connect.unknown_app")
    if redirect_uri is None or redirect_uri not in app.redirect_uris:
        raise Refusal("validation_error", "connect.unknown_redirect")
    state = _once(values("state")) or ""
    if not PRINTABLE.fullmatch(state) or len(state) > LONGEST_STATE:
        state = ""

    def fault(sentence: str, error: str = "invalid_request") -> Faulty:
        return Faulty(redirect_uri, state, error, sentence)

    if not state:
        raise fault(f"state must be 1 to {LONGEST_STATE} printable ASCII characters, once")
    fields: dict[str, str] = {}
    for name in FIELDS:
        text = _once(values(name))
        if text is None and values(name):
            raise fault(f"{name} must be there once")
        fields[name] = text or ""
    if fields["response_type"] not in ("", "code"):
        raise fault("response_type must be code", "unsupported_response_type")
    if fields["code_challenge_method"] != "S256":
        raise fault("code_challenge_method must be S256")
    if not CHALLENGE.fullmatch(fields["code_challenge"]):
        raise fault("code_challenge must be the base64url of a SHA-256, 43 characters")
    if not any(fields["url"].startswith(f"{origin}/") for origin in app.receivers):
        raise fault("url must be at one of the origins that are registered for this app")
    events = tuple(re.findall("[^ ,]+", fields["events"]))
    wish = Wish(app.id, app.name, redirect_uri, fields["code_challenge"], fields["url"], events)
    try:
        connecting.judge(wish, rules)
    except Refusal as refusal:
        said = "; ".join(one.sentence for one in refusal.faults)
        raise fault(said.encode("ascii", "replace").decode()) from None
    return Asked(app, wish, state)


def denied(asked: Asked) -> Faulty:
    """Return what an app is told when the owner has said no."""
    sentence = "the owner has not allowed it"
    return Faulty(asked.wish.redirect_uri, asked.state, "access_denied", sentence)


class Unusable(Exception):
    """Fields that prove nothing, whatever the code is: an error code of RFC 6749 and a sentence."""

    def __init__(self, error: str, sentence: str) -> None:
        super().__init__(sentence)
        self.error = error


def proof_of(fields: Mapping[str, str]) -> Proof:
    """Return what an app shows to get its webhook. Raise Unusable."""
    if fields.get("grant_type") != "authorization_code":
        raise Unusable("unsupported_grant_type", "grant_type must be authorization_code.")
    for name in NEEDED:
        if not VALUE.fullmatch(fields.get(name, "")):
            raise Unusable("invalid_request", f"{name} must be there, in printable ASCII.")
    if not VERIFIER.fullmatch(fields["code_verifier"]):
        message = "code_verifier must have 43 to 128 unreserved characters."
        raise Unusable("invalid_request", message)
    return Proof(
        digest_of(fields["code"]),
        fields["client_id"],
        fields["redirect_uri"],
        fields["code_verifier"],
    )


def address(redirect_uri: str, parameters: Mapping[str, str]) -> str:
    """Return a redirect URI with further parameters."""
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{urlencode(parameters)}"


def origin_of(uri: str) -> str:
    """Return scheme, host and port of a redirect URI."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"


def _once(values: Sequence[str]) -> str | None:
    return values[0] if len(values) == 1 else None
