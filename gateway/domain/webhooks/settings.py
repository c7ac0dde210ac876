"""Declares the settings of a webhook once, for its form, for files of webhooks and for the audit.

A setting has two forms: as it is typed (a text, several words, or a box that is ticked) and as
outbox.webhooks.Draft holds it. A new setting is a field of Draft and Webhook of the same name and
one line in SETTINGS; its input in the form comes beside that.
It is one module because the list of settings and what judges them all are read together.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import oauth2, schedules, typed_conditions, webhook_limits
from gateway.records.errors import Fault, Refusal
from gateway.records.values import numbers
from gateway.records.values.formats import Wrong
from gateway.records.values.patterns import NOT_TEXT
from outbox.events import cloud_events
from outbox.sending import addresses, urls
from outbox.sending.client_certificates import ClientCertificate
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.request import MASK, Header, check_headers
from outbox.webhooks import Draft, Webhook, operational

LONGEST_URL = 2048
LONGEST_DESCRIPTION = 200
FASTEST, SLOWEST = 1, 30
"""Limits of a webhook's timeout, in seconds."""
LONGEST_NAME = 63
NAME = re.compile(f"[a-z0-9][a-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
NAME_SIGNS = (
    "A name has up to {most} lowercase letters, digits, dots, hyphens and underscores, a letter or "
    "digit first."
)
TIMEOUT = "The timeout must be a whole number of seconds from {least} to {most}."
HEADER_LINES = "Write each header on its own line, as Name: value."
CONTEXT_HEADER = "{name} is set by the format; remove the header."
CONTRACT = "contract"
"""The format of a webhook that has no other."""
HEADER_MOVED = (
    "The URL is on another server now; enter the value of {name} again, or remove the header."
)

Typed = str | bool | tuple[str, ...]
Kind = Literal["text", "number", "flag", "words", "lines", "pairs", "parts"]
"""`text`: one line; `number`: a whole number, or empty; `flag`: a box; `words`: several boxes;
`lines`: one on each line; `pairs`: `Name: value` on each line, whose values are secrets; `parts`:
the same with known names, of which some are secrets, and a dot before further names."""
EMPTY: Mapping[Kind, Typed] = {
    "text": "", "number": "", "flag": False, "words": (), "lines": "", "pairs": "",
    "parts": "",
}  # fmt: skip
"""What is typed for a setting that is left out."""


@dataclass(frozen=True, slots=True)
class About:
    """What a setting is judged with: the events and the URL of its webhook, the rules of addresses.

    `listens`: it is an operational webhook, which has events of its own. `headers` are the stored
    ones, whose values a header with the value `***` keeps; `***` also keeps `certificate` and the
    secrets of `oauth2`. With `moved` it keeps nothing: the stored URL is on another server, which
    must not get them unsaid.
    """

    events: Sequence[str]
    listens: bool
    rules: addresses.Rules
    headers: Sequence[Header] = ()
    certificate: ClientCertificate | None = None
    oauth2: ClientCredentials | None = None
    url: str = ""
    moved: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored webhook; `headers`, `certificate` and `oauth2` are None when no key decrypts them.

    `broken` tells why, by setting.
    """

    webhook: Webhook
    headers: Sequence[Header] | None
    certificate: ClientCertificate | None = None
    oauth2: ClientCredentials | None = None
    broken: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name in the form, in files and in faults.

    `column` is its field of Draft. `read` returns that field's value of what was typed, and raises
    Wrong or another ValueError; `shown` returns what would be typed, without secrets; `stored`
    returns the field's value of a stored webhook.
    """

    name: str
    kind: Kind
    column: str
    read: Callable[[Any, About], Any]
    shown: Callable[[Any], Typed]
    stored: Callable[[Stored], Any]


def setting(
    name: str,
    kind: Kind,
    read: Callable[[Any, About], Any],
    shown: Callable[[Any], Typed],
    column: str = "",
    stored: Callable[[Stored], Any] | None = None,
) -> Setting:
    """Return a setting whose field has its name, in Draft and in Webhook, unless told otherwise."""
    own = column or name
    return Setting(name, kind, own, read, shown, stored or (lambda one: getattr(one.webhook, own)))


def names_of(listens: bool) -> tuple[str, ...]:
    """Return the events that a webhook can subscribe to; `listens`: an operational one."""
    return operational.NAMES if listens else EVENT_NAMES


def judge(
    typed: Mapping[str, Typed],
    *,
    rules: addresses.Rules,
    listens: bool = False,
    stored: Stored | None = None,
) -> Draft:
    """Return the Draft of what was typed for a new webhook, or for the `stored` one.

    `typed` has all settings by their names; what else it has is ignored. See About for the others.
    Raises validation_error with every fault.
    """
    events = typed["events"]
    assert isinstance(events, tuple)
    url = str(typed["url"]).strip()
    about = About(events, listens, rules, url=url)
    if stored is not None:
        about = replace(
            about, headers=stored.headers or (), certificate=stored.certificate,
            oauth2=stored.oauth2, moved=not urls.same_server(stored.webhook.url, url),
        )  # fmt: skip
    faults, values = list[Fault](), dict[str, Any]()
    for setting in SETTINGS:
        try:
            values[setting.column] = setting.read(typed[setting.name], about)
        except Wrong as wrong:
            faults += wrong.faults(setting.name)
        except ValueError as wrong:
            faults.append(Fault(setting.name, "invalid", str(wrong)))
    if values.get("format") and (own := _own_context(values.get("headers", ()))):
        faults.append(Fault("headers", "header_context", CONTEXT_HEADER.format(name=own)))
    named = {name.lower() for name, _ in values.get("headers") or ()}
    if values.get("oauth2") is not None and "authorization" in named:
        faults.append(Fault("headers", "oauth2_authorization", oauth2.AUTHORIZATION))
    if faults:
        raise Refusal("validation_error", "The webhook was not saved.", faults=faults)
    if values["format"] and values["ordered"]:
        # The numbers are the attribute `sequence`.
        values["sequenced"] = True
    return Draft(**values)


def _own_context(headers: Sequence[Header]) -> str | None:
    """Return the first custom header with the name of an attribute of CloudEvents."""
    return next((name for name, _ in headers if name.lower().startswith(cloud_events.PREFIX)), None)


def typed_of(stored: Stored) -> dict[str, Typed]:
    """Return the settings of a webhook as they would be typed, without secrets."""
    return {one.name: one.shown(one.stored(stored)) for one in SETTINGS}


def changed(before: Stored, draft: Draft) -> list[str]:
    """Return the names of the settings that differ."""
    return [one.name for one in SETTINGS if one.stored(before) != getattr(draft, one.column)]


def _text(value: str | None) -> str:
    return value or ""


def _name(text: str, about: About) -> str | None:
    name = text.strip()
    if name and not NAME.fullmatch(name):
        raise Wrong("webhook_name", NAME_SIGNS, most=LONGEST_NAME)
    return name or None


def _url(text: str, about: About) -> str:
    url = text.strip()
    if not url:
        raise Wrong("required", "Enter the URL of the receiver.")
    if len(url) > LONGEST_URL:
        raise Wrong("too_long", "The URL must have at most {most} characters.", most=LONGEST_URL)
    try:
        urls.check_url(url, about.rules)
    except urls.Refused as refused:
        raise oauth2.refused_url(refused) from None
    return url


def _events(chosen: tuple[str, ...], about: About) -> tuple[str, ...]:
    names = names_of(about.listens)
    unknown = sorted(set(chosen).difference(names))
    if not chosen:
        raise Wrong("required", "Choose at least one event.")
    if unknown:
        raise Wrong("unknown", f"There is no event {unknown[0][:80]!r}.")
    return tuple(name for name in names if name in set(chosen))


def _description(text: str, about: About) -> str | None:
    description = text.strip()
    if len(description) > LONGEST_DESCRIPTION:
        text = "The description must have at most {most} characters."
        raise Wrong("too_long", text, most=LONGEST_DESCRIPTION)
    if NOT_TEXT.search(description):
        raise Wrong("invalid", "The description must not contain control characters.")
    return description or None


def whole(typed: str, least: int, most: int, text: str) -> int | None:
    """Return the whole number that was typed, None for an empty one. Raise Wrong with `text`."""
    number = typed.strip()
    if not number:
        return None
    if (read := numbers.typed(number, least, most)) is None:
        raise Wrong("out_of_range", text, least=least, most=most)
    return read


def _timeout(text: str, about: About) -> int | None:
    seconds = whole(text, FASTEST, SLOWEST, TIMEOUT)
    return None if seconds is None else seconds * 1000


def _concurrency(text: str, about: About) -> int | None:
    return whole(text, 1, webhook_limits.MOST_AT_ONCE, webhook_limits.AT_ONCE)


def _thin(ticked: bool, about: About) -> bool:
    if ticked and about.listens:
        raise Wrong("operational", webhook_limits.OPERATIONAL)
    return ticked


def _format(text: str, about: About) -> str | None:
    form = text.strip()
    if form and form != CONTRACT and form not in cloud_events.MODES:
        known = ", ".join((CONTRACT, *cloud_events.MODES))
        raise Wrong("format", f"There is no format {form[:40]!r}; the formats are: {known}.")
    return None if form in ("", CONTRACT) else form


def _headers(text: str, about: About) -> tuple[Header, ...]:
    known = {name.lower(): value for name, value in about.headers}
    headers: list[Header] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            raise ValueError(HEADER_LINES)
        if value == MASK:
            if about.moved:
                raise Wrong("header_moved", HEADER_MOVED.format(name=name))
            value = known.get(name.lower(), "")
            if not value:
                raise Wrong("header_missing", f"No value of {name} is stored; enter its value.")
        headers.append((name, value))
    check_headers(headers)
    return tuple(headers)


def shown_headers(headers: Sequence[Header] | None) -> str:
    """Return custom headers as they are typed, without values, because values are secrets."""
    return "".join(f"{name}: {MASK}\n" for name, _ in headers or ())


# The order is that of the faults, and of a file.
SETTINGS: tuple[Setting, ...] = (
    setting("name", "text", _name, _text),
    setting("url", "text", _url, _text),
    setting("events", "words", _events, tuple),
    setting("description", "text", _description, _text),
    setting(
        "timeout", "number", _timeout,
        lambda ms: "" if ms is None else str(ms // 1000), column="timeout_ms",
    ),
    setting(
        "headers", "pairs", _headers, shown_headers,
        stored=lambda one: None if one.headers is None else tuple(one.headers),
    ),
    setting(
        "schedule", "text", lambda text, about: schedules.read(text), schedules.written,
        stored=lambda one: schedules.stored(one.webhook.schedule),
    ),
    setting("ordered", "flag", lambda ticked, about: ticked, bool),
    setting("sequenced", "flag", lambda ticked, about: ticked, bool),
    setting(
        "conditions", "lines", lambda text, about: typed_conditions.read(text, about.events) or (),
        typed_conditions.written, stored=lambda one: one.webhook.conditions or (),
    ),
    setting("ed25519", "flag", lambda ticked, about: ticked, bool),
    setting("concurrency", "number", _concurrency, lambda most: _text(most and str(most))),
    setting(
        "rate", "text", lambda text, about: webhook_limits.read_rate(text),
        webhook_limits.written_rate,
    ),
    setting(
        "certificate", "text",
        lambda text, about: webhook_limits.read_certificate(
            text, about.url, about.certificate, moved=about.moved
        ),
        lambda one: "" if one is None else MASK, stored=lambda one: one.certificate,
    ),
    setting(
        "proxy", "text",
        lambda name, about: webhook_limits.read_proxy(name, about.rules.proxies), _text,
    ),
    setting("thin", "flag", _thin, bool),
    setting(
        "oauth2", "parts",
        lambda text, about: oauth2.read(text, about.rules, about.oauth2, moved=about.moved),
        oauth2.shown, stored=lambda one: one.oauth2,
    ),
    setting("format", "text", _format, _text),
    setting("handshake", "flag", lambda ticked, about: ticked, bool),
)  # fmt: skip
NOTHING: Mapping[str, Typed] = {one.name: EMPTY[one.kind] for one in SETTINGS}
"""The settings of an empty form."""
