"""Explain the outcome of an attempt as steps, each with a code for a sentence to the owner.

The values of a sentence say no more about the network than the outcome in the delivery log does.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, get_args
from urllib.parse import urljoin, urlsplit

from outbox.durations import SECOND
from outbox.sending.addresses import Rules
from outbox.sending.outcome import Outcome
from outbox.sending.permission import Permission
from outbox.sending.request_targets import encoded
from outbox.sending.token_request import Fetched
from outbox.sending.urls import DEFAULT_PORTS, Refused, Target, check_url

StepName = Literal[
    "token_url", "token_dns", "token_egress", "token_connect", "token_tls", "token_answer",
    "url", "sign", "dns", "egress", "connect", "tls", "handshake", "answer",
]  # fmt: skip
"""Those of the request for an access token, and those of the request to the receiver."""
Verdict = Literal["passed", "skipped", "failed"]
TOKEN_STEPS: Mapping[StepName, StepName] = {
    "url": "token_url", "dns": "token_dns", "egress": "token_egress", "connect": "token_connect",
    "tls": "token_tls",
}  # fmt: skip

SLOW_SHARE = 0.5
"""A response that takes more than this share of the timeout gets a warning."""
REFUSALS: Mapping[int, "Code"] = {
    401: "unsigned", 403: "unsigned", 404: "nothing_there", 405: "no_post", 410: "gone",
    413: "too_large", 415: "no_json",
}  # fmt: skip
LIMITED = 429
LONGEST_LOCATION = 300
PLAIN_PORT = ("wrong version number", "record layer failure", "http request")
"""What TLS reports when the receiver answers in plain http."""


Code = Literal[
    "url", "has_address", "literal", "proxy_resolves", "allowed", "proxy_decides", "connected",
    "connected_somewhere", "certificate", "plain", "permitted", "permitted_rate", "late",
    "answered", "answered_slowly", "limited",
    "unavailable", "redirect", "redirect_to", "broken", "unsigned", "nothing_there", "no_post",
    "gone", "too_large", "no_json", "refused", "no_answer", "unsendable", "failed", "failed_plain",
    "failed_host", "token_given", "token_untimed",
]  # fmt: skip
"""What a step says. The codes `failed…` repeat the value `error`, a text of the delivery log."""
CODES: tuple[Code, ...] = get_args(Code)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an attempt; `micros` is None for a step without a measured duration."""

    name: StepName
    verdict: Verdict
    code: Code
    micros: int | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    """What the sentence of the code repeats."""


def steps_of(url: str, outcome: Outcome, rules: Rules, timeout_s: float) -> list[Step]:
    """Return the steps in their order; the last one is the one that failed, or the response."""
    steps = _before_answer(url, outcome, rules)
    if steps[-1].verdict == "failed":
        return steps
    code, values = _of_answer(url, outcome, timeout_s)
    verdict: Verdict = "passed" if failing_step(outcome) is None else "failed"
    return [*steps, Step("answer", verdict, code, _waited(outcome), values)]


def token_steps_of(url: str, fetched: Fetched, rules: Rules) -> list[Step]:
    """Return the steps of a request for an access token, as those of a delivery."""
    outcome, token = fetched.outcome, fetched.token
    steps = [
        replace(step, name=TOKEN_STEPS[step.name]) for step in _before_answer(url, outcome, rules)
    ]
    if steps[-1].verdict == "failed":
        return steps
    waited = _waited(outcome)
    if token is None:
        return [*steps, _failed("token_answer", fetched.failure, waited)]
    values = {"status": str(outcome.status)}
    if token.life is None:
        return [*steps, Step("token_answer", "passed", "token_untimed", waited, values)]
    values["seconds"] = f"{token.life:.12g}"
    return [*steps, Step("token_answer", "passed", "token_given", waited, values)]


def _before_answer(url: str, outcome: Outcome, rules: Rules) -> list[Step]:
    """Return the steps before the response, or those up to the one that failed."""
    try:
        target = check_url(url, rules)
    except Refused as refused:
        if refused.kind != "address":
            return [_failed("url", str(refused))]
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        return [
            _to(parts.scheme, parts.hostname or "", port),
            _failed("egress", str(refused)),
        ]
    steps = [_to(target.scheme, target.host, target.port)]
    unseen = rules.proxies_resolve and outcome.dns_us is None
    for step in _on_the_way(target, outcome, failing_step(outcome), unseen=unseen):
        steps.append(step)
        if step.verdict == "failed":
            break
    return steps


def with_handshake(
    steps: Sequence[Step], permission: Permission, refusal: Outcome | None
) -> list[Step]:
    """Return the steps with the handshake before the response, or in its place if refused."""
    last = steps[-1]
    if refusal is not None:
        if last.name != "answer":
            return [*steps]
        return [*steps[:-1], _failed("handshake", refusal.error or "", last.micros)]
    passed = Step("handshake", "passed", "permitted")
    if permission.rate is not None:
        values = {"rate": f"{permission.rate / 1000:g}"}
        passed = Step("handshake", "passed", "permitted_rate", None, values)
    return [*steps[:-1], passed, last]


def failing_step(outcome: Outcome) -> StepName | None:
    """Return the step at which an attempt failed; None for a success."""
    name = outcome.outcome
    if name == "success":
        return None
    if name == "blocked":
        return "egress"
    if name == "dns_error":
        return "dns"
    if name == "tls_error":
        return "tls"
    if name == "proxy_error":
        return "connect"
    # Without an address there was no connection to answer on.
    return "connect" if name == "connect_error" and outcome.address is None else "answer"


def _on_the_way(
    target: Target, outcome: Outcome, failing: StepName | None, *, unseen: bool
) -> list[Step]:
    """Return the steps before the response; those behind the failing one mean nothing.

    `unseen`: the proxy alone knows the address.
    """
    wrong = outcome.error or ""
    host = {"host": target.host}
    dns = Step("dns", "passed", "has_address", outcome.dns_us, host)
    if target.literal:
        dns = Step("dns", "skipped", "literal")
    elif failing == "dns":
        dns = _failed("dns", wrong, outcome.dns_us, "failed_host", **host)
    elif unseen:
        dns = Step("dns", "skipped", "proxy_resolves")
    egress = Step("egress", "passed", "allowed")
    if unseen and not target.literal:
        egress = Step("egress", "skipped", "proxy_decides")
    if failing == "egress":
        egress = _failed("egress", wrong)
    connect = Step("connect", "passed", "connected_somewhere", outcome.connect_us)
    if outcome.address:
        values = {"address": outcome.address}
        connect = Step("connect", "passed", "connected", outcome.connect_us, values)
    if failing == "connect":
        connect = _failed("connect", wrong, outcome.connect_us)
    tls = Step("tls", "passed", "certificate", outcome.tls_us, host)
    if target.scheme == "http":
        tls = Step("tls", "skipped", "plain")
    elif failing == "tls":
        plain = any(words in wrong for words in PLAIN_PORT)
        tls = _failed("tls", wrong, outcome.tls_us, "failed_plain" if plain else "failed")
    return [dns, egress, connect, tls]


def _failed(
    name: StepName, error: str, micros: int | None = None, code: Code = "failed", **values: str
) -> Step:
    if not error:
        return Step(name, "failed", "no_answer", micros)
    return Step(name, "failed", code, micros, {"error": error, **values})


def _to(scheme: str, host: str, port: int) -> Step:
    return Step("url", "passed", "url", None, {"scheme": scheme, "host": host, "port": str(port)})


def _of_answer(url: str, outcome: Outcome, timeout_s: float) -> tuple[Code, Mapping[str, str]]:
    """Return what to say about the response, and its values."""
    name, status = outcome.outcome, outcome.status
    if name == "timeout":
        return "late", {"seconds": f"{timeout_s:g}"}
    if status is None or name == "protocol_error":
        return ("failed", {"error": outcome.error}) if outcome.error else ("no_answer", {})
    values = {"status": str(status)}
    if name == "success":
        waited = (outcome.first_byte_us or 0) / SECOND
        if waited <= timeout_s * SLOW_SHARE:
            return "answered", values
        return "answered_slowly", {**values, "took": f"{waited:.1f}", "most": f"{timeout_s:g}"}
    if name == "throttled":
        return "limited" if status == LIMITED else "unavailable", values
    if name == "http_3xx":
        place = _location(url, outcome)
        return ("redirect_to", {**values, "place": place}) if place else ("redirect", values)
    if name == "http_5xx":
        return "broken", values
    return REFUSALS.get(status, "refused"), values


def _location(url: str, outcome: Outcome) -> str:
    """Return where a redirect leads, as an absolute URL; empty when it does not say so."""
    named = [value for name, value in outcome.response_headers if name.lower() == "location"]
    if not named or not named[0].strip():
        return ""
    place = named[0].strip()
    with suppress(ValueError):
        place = urljoin(url, place)
    shown = encoded(place[:LONGEST_LOCATION])
    return f"{shown}…" if len(place) > LONGEST_LOCATION else shown


def _waited(outcome: Outcome) -> int | None:
    """Return the time from the request to the response, or to the end of the attempt."""
    if outcome.first_byte_us is not None:
        return outcome.first_byte_us
    before = (outcome.dns_us or 0) + (outcome.connect_us or 0) + (outcome.tls_us or 0)
    return max(outcome.total_us - before, 0)
