"""Prints an examination by the doctor: for people, or as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gateway.cli import tables
from gateway.console.frame.display import lasting, took
from gateway.records.values import dates
from outbox.queue.state.policy import JITTER, Schedule
from outbox.sending.steps import Step
from outbox.worker.doctor import Examination

Addresses = Sequence[tuple[str, bool]]
"""The addresses of a host, and whether deliveries to each are allowed."""
NAMES = {
    "url": "URL", "sign": "Signature", "dns": "DNS", "egress": "Egress", "connect": "Connect",
    "tls": "TLS", "answer": "Response",
}  # fmt: skip
MARKS = {"passed": "ok", "skipped": "-", "failed": "FAILED"}
SECOND = 1_000_000
UNKNOWN_TO_IT = (
    "The doctor signed with a secret of its own. Give the right one with --secret, or give the id "
    "of the webhook instead of the URL."
)


def lines(found: Examination, addresses: Addresses, *, own_secret: bool) -> Iterator[str]:
    """Return the lines for people: the steps, the verdict, the retries."""
    for step in found.steps:
        spent = "" if step.micros is None else took(step.micros)
        yield f"{MARKS[step.verdict]:7} {NAMES[step.name]:9} {spent:>8}  {_text(step, addresses)}"
    yield ""
    if found.failed is None:
        yield "A delivery to this receiver would succeed."
    else:
        yield f"A delivery to this receiver would fail: {tables.inert(found.decision.reason)}."
        if own_secret and found.outcome is not None and found.outcome.status in (401, 403):
            yield UNKNOWN_TO_IT
    yield from _retries(found.schedule, found.started_at)


def reason(step: Step) -> str:
    """Return the failed step and its sentence on one line."""
    return f"{NAMES[step.name]}: {tables.inert(step.text).removesuffix('.')}"


def record(found: Examination, addresses: Addresses) -> Mapping[str, Any]:
    """Return the same as JSON."""
    outcome, failed = found.outcome, found.failed
    return {
        "url": found.url,
        "succeeds": failed is None,
        "failedStep": failed.name if failed else None,
        "outcome": outcome.outcome if outcome else None,
        "status": outcome.status if outcome else None,
        "steps": [
            {"step": step.name, "verdict": step.verdict, "micros": step.micros, "text": step.text}
            for step in found.steps
        ],
        "addresses": [{"address": one, "allowed": allowed} for one, allowed in addresses],
        "retries": [
            {
                "attempt": retry.number, "seconds": retry.usual,
                "earliestSeconds": retry.earliest, "latestSeconds": retry.latest,
            }
            for retry in found.schedule.preview()
        ],
    }  # fmt: skip


def _retries(schedule: Schedule, now: int) -> Iterator[str]:
    retries = schedule.preview()
    if not retries:
        yield "A failed delivery is not sent again: [retry] schedule is empty."
        return
    yield f"If each attempt failed at once, the next ones would start (give or take {JITTER:.0%}):"
    for retry in retries:
        early, late = (_at(now, seconds) for seconds in (retry.earliest, retry.latest))
        usual = lasting(round(retry.usual * SECOND))
        yield f"  {retry.number:3}  after {usual:>9}  {early} to {late}"


def _text(step: Step, addresses: Addresses) -> str:
    """Return the sentence of a step; to the operator it also names addresses."""
    text = step.text
    if step.name == "dns" and step.verdict == "passed" and addresses:
        text = f"It has the address {', '.join(address for address, _ in addresses)}."
    closed = [address for address, allowed in addresses if not allowed]
    if step.name == "egress" and step.verdict == "failed" and closed:
        text = f"{text} Not allowed: {', '.join(closed)}."
    return tables.inert(text)


def _at(now: int, seconds: float) -> str:
    return dates.show(now + round(seconds * SECOND)).replace("T", " ")[:19] + " UTC"
