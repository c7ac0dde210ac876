"""Explain the outcome of an attempt as steps, each with one sentence for the webhook's owner.

The sentences say no more about the network than the outcome in the delivery log does.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import SplitResult, urljoin, urlsplit

from outbox.durations import SECOND
from outbox.sending.addresses import Rules
from outbox.sending.outcome import Outcome
from outbox.sending.request_targets import encoded
from outbox.sending.token_request import Fetched
from outbox.sending.urls import DEFAULT_PORTS, Refused, Target, check_url

StepName = Literal[
    "token_url", "token_dns", "token_egress", "token_connect", "token_tls", "token_answer",
    "url", "sign", "dns", "egress", "connect", "tls", "answer",
]  # fmt: skip
"""Those of the request for an access token, and those of the request to the receiver."""
Verdict = Literal["passed", "skipped", "failed"]
TOKEN_STEPS: Mapping[StepName, StepName] = {
    "url": "token_url", "dns": "token_dns", "egress": "token_egress", "connect": "token_connect",
    "tls": "token_tls", "answer": "token_answer",
}  # fmt: skip

SLOW_SHARE = 0.5
"""A response that takes more than this share of the timeout gets a warning."""
REFUSALS = {
    400: "it refused the request.",
    401: "it refused the signature or wants credentials. Check that it has the secret of this "
    "webhook and verifies the raw body.",
    403: "it refused the signature or wants credentials. Check that it has the secret of this "
    "webhook and verifies the raw body.",
    404: "there is nothing at this path.",
    405: "it does not accept POST at this path.",
    410: "it asked to stop receiving events. A delivery with this response disables the webhook.",
    413: "the body is too large for it.",
    415: "it does not accept JSON.",
}
LIMITED = 429
LONGEST_LOCATION = 300
PLAIN_PORT = ("wrong version number", "record layer failure", "http request")
"""What TLS reports when the receiver answers in plain http."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an attempt; `micros` is None for a step without a measured duration."""

    name: StepName
    verdict: Verdict
    text: str
    micros: int | None = None


def steps_of(url: str, outcome: Outcome, rules: Rules, timeout_s: float) -> list[Step]:
    """Return the steps in their order; the last one is the one that failed, or the response."""
    steps = _before_answer(url, outcome, rules)
    if steps[-1].verdict == "failed":
        return steps
    verdict: Verdict = "passed" if failing_step(outcome) is None else "failed"
    return [*steps, Step("answer", verdict, _of_answer(url, outcome, timeout_s), _waited(outcome))]


def token_steps_of(url: str, fetched: Fetched, rules: Rules) -> list[Step]:
    """Return the steps of a request for an access token, as those of a delivery."""
    outcome = fetched.outcome
    steps = [
        replace(
            step,
            name=TOKEN_STEPS[step.name],
            text=step.text.replace("he receiver", "he token endpoint"),
        )
        for step in _before_answer(url, outcome, rules)
    ]
    if steps[-1].verdict == "failed":
        return steps
    if fetched.token is None:
        last = Step("token_answer", "failed", _sentence(fetched.failure), _waited(outcome))
    else:
        life = fetched.token.life
        lasts = f"lasts {life:g} s" if life is not None else "does not say how long it lasts"
        said = f"The token endpoint answered {outcome.status} with a token, which {lasts}."
        last = Step("token_answer", "passed", said, _waited(outcome))
    return [*steps, last]


def _before_answer(url: str, outcome: Outcome, rules: Rules) -> list[Step]:
    """Return the steps before the response, or those up to the one that failed."""
    try:
        target = check_url(url, rules)
    except Refused as refused:
        if refused.kind != "address":
            return [Step("url", "failed", _sentence(str(refused)))]
        return [
            Step("url", "passed", _of_parts(urlsplit(url))),
            Step("egress", "failed", _sentence(str(refused))),
        ]
    steps = [Step("url", "passed", _of_url(target))]
    unseen = rules.proxies_resolve and outcome.dns_us is None
    for step in _on_the_way(target, outcome, failing_step(outcome), unseen=unseen):
        steps.append(step)
        if step.verdict == "failed":
            break
    return steps


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
    wrong = _sentence(outcome.error or "it failed")
    dns = Step("dns", "passed", f"{target.host} has an address.", outcome.dns_us)
    if target.literal:
        dns = Step("dns", "skipped", "The URL has an IP address, so there is no name to look up.")
    elif failing == "dns":
        dns = Step("dns", "failed", f"{target.host}: {outcome.error}.", outcome.dns_us)
    elif unseen:
        dns = Step("dns", "skipped", "The proxy looks the name up.")
    egress = Step("egress", "passed", "Deliveries to this address are allowed.")
    if unseen and not target.literal:
        egress = Step("egress", "skipped", "The proxy decides which addresses it reaches.")
    if failing == "egress":
        egress = Step("egress", "failed", wrong)
    where = f" to {outcome.address}" if outcome.address else ""
    connect = Step("connect", "passed", f"Connected{where}.", outcome.connect_us)
    if failing == "connect":
        connect = Step("connect", "failed", wrong, outcome.connect_us)
    tls = Step("tls", "passed", f"The certificate is valid for {target.host}.", outcome.tls_us)
    if target.scheme == "http":
        tls = Step("tls", "skipped", "The URL is plain http: the request is not encrypted.")
    elif failing == "tls":
        plain = any(words in (outcome.error or "") for words in PLAIN_PORT)
        hint = " The port may serve plain http." if plain else ""
        tls = Step("tls", "failed", f"{wrong}{hint}", outcome.tls_us)
    return [dns, egress, connect, tls]


def _of_url(target: Target) -> str:
    return _to(target.scheme, target.host, target.port)


def _of_parts(parts: SplitResult) -> str:
    """Return the same for a URL that is valid and refused."""
    port = parts.port or DEFAULT_PORTS[parts.scheme]
    return _to(parts.scheme, parts.hostname or "", port)


def _to(scheme: str, host: str, port: int) -> str:
    return f"{scheme} to {host}, port {port}."


def _of_answer(url: str, outcome: Outcome, timeout_s: float) -> str:
    name, status = outcome.outcome, outcome.status
    if name == "timeout":
        return f"No response within {timeout_s:g} s. Respond first, and work afterwards."
    if status is None or name == "protocol_error":
        return _sentence(outcome.error or "there was no valid response")
    said = f"The receiver answered {status}"
    if name == "success":
        waited = (outcome.first_byte_us or 0) / SECOND
        slow = f" It took {waited:.1f} s of the {timeout_s:g} s allowed; respond first."
        return f"{said} to the signed request.{slow if waited > timeout_s * SLOW_SHARE else ''}"
    if name == "throttled":
        limits = "it limits requests." if status == LIMITED else "it is unavailable or overloaded."
        return f"{said}: {limits}"
    if name == "http_3xx":
        to = _location(url, outcome)
        said = f"{said}, a redirect{to and f' to {to}'}."
        return f"{said} Redirects are not followed: use the URL of the target."
    if name == "http_5xx":
        return f"{said}: it failed. Its own log has the reason."
    return f"{said}: {REFUSALS.get(status, 'it refused the request.')}"


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


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
