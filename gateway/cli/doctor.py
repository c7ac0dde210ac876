"""`carteiro doctor`: examines a receiver, by its URL or as the webhook that it belongs to.

Without either it lists the webhooks that earlier versions requested at another path.
"""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import json

from gateway.cli import tables
from gateway.cli.commands import Say, existing
from gateway.cli.endings import FAILED, Ended
from gateway.cli.language import spoken
from gateway.console.layout.told_steps import step_text, told
from gateway.domain.webhooks import pings
from gateway.records.audit import Actor
from gateway.records.values import dates
from gateway.server import startup
from gateway.server.config import Config
from gateway.server.delivery import doctor_of, rules_of, settings_of
from gateway.server.parts import PARTS
from gateway.texts import CODES, Texts, of
from outbox import webhooks
from outbox.durations import SECOND
from outbox.errors import CannotStart
from outbox.ids import Ids, is_id
from outbox.queue.state.claimed_deliveries import Claimed, Endpoint
from outbox.queue.state.policy import JITTER, Schedule
from outbox.sending.egress_guard import Guard
from outbox.sending.explained import Step, StepName
from outbox.sending.lookups import LookupFailed
from outbox.sending.oddities import separated
from outbox.sending.request import SECRET_BYTES, new_secret, sign_standard
from outbox.sending.request_targets import requested
from outbox.sending.urls import Refused, check_url
from outbox.webhooks import Webhook, requested_urls
from outbox.webhooks.secrets import KeyRing
from outbox.worker.examination import Examination

WEBHOOKS_AT_ONCE = 500
Addresses = Sequence[tuple[str, bool]]
"""The addresses of a host, and whether deliveries to each are allowed."""
NAMES: Mapping[StepName, str] = {
    "token_url": "Token URL", "token_dns": "Token DNS", "token_egress": "Token egress",
    "token_connect": "Token connect", "token_tls": "Token TLS", "token_answer": "Token",
    "url": "URL", "sign": "Signature", "dns": "DNS", "egress": "Egress", "connect": "Connect",
    "tls": "TLS", "answer": "Response",
}  # fmt: skip


def lines(examination: Examination, addresses: Addresses, *, own_secret: bool) -> Iterator[str]:
    """Return the lines for people: the steps, the verdict, the retries."""
    t = spoken()
    width = max(9, *(len(NAMES[step.name]) for step in examination.steps))
    for step in examination.steps:
        spent = "" if step.micros is None else t.took(step.micros)
        mark = t(f"cli.doctor.{step.verdict}")
        yield f"{mark:7} {NAMES[step.name]:{width}} {spent:>8}  {_text(t, step, addresses)}"
    for note in _notes(examination):
        yield f"{'':7} {NAMES['answer']:{width}} {'':>8}  {tables.inert(told(t, note))}"
    yield ""
    if examination.failed is None:
        yield t("doctor.well")
    else:
        decision, outcome = examination.decision, examination.outcome
        yield t("cli.doctor.ill", reason=tables.inert(decision.reason))
        if own_secret and outcome is not None and outcome.status in (401, 403):
            yield t("cli.doctor.unknown_secret")
    yield from _retries(t, examination.schedule, examination.started_at)


def record(examination: Examination, addresses: Addresses) -> Mapping[str, Any]:
    """Return the same as JSON."""
    outcome, failed = examination.outcome, examination.failed
    return {
        "url": requested(examination.url),
        "succeeds": failed is None,
        "failedStep": failed.name if failed else None,
        "outcome": outcome.outcome if outcome else None,
        "status": outcome.status if outcome else None,
        "notes": _notes(examination),
        "steps": [
            {
                "step": step.name, "verdict": step.verdict, "micros": step.micros,
                "text": step_text(of(CODES[0]), step),
            }
            for step in examination.steps
        ],
        "addresses": [{"address": one, "allowed": allowed} for one, allowed in addresses],
        "retries": [
            {
                "attempt": retry.number, "seconds": retry.usual,
                "earliestSeconds": retry.earliest, "latestSeconds": retry.latest,
            }
            for retry in examination.schedule.preview()
        ],
    }  # fmt: skip


def _notes(examination: Examination) -> list[str]:
    """Return what was odd about a response that counts."""
    outcome = examination.outcome
    return separated(outcome.error) if outcome is not None and outcome.decided else []


def _retries(t: Texts, schedule: Schedule, now: int) -> Iterator[str]:
    retries = schedule.preview()
    if not retries:
        yield t("cli.doctor.no_retries")
        return
    yield t("cli.doctor.retries", jitter=f"{JITTER:.0%}")
    for retry in retries:
        early, late = (_at(now, seconds) for seconds in (retry.earliest, retry.latest))
        usual = t.lasting(round(retry.usual * SECOND))
        usual = t("cli.doctor.after", span=f"{usual:>9}")
        yield f"  {retry.number:3}  {usual}  {t('cli.doctor.between', early=early, late=late)}"


def _text(t: Texts, step: Step, addresses: Addresses) -> str:
    """Return the sentence of a step; to the operator it also names addresses."""
    text = step_text(t, step)
    if step.name == "dns" and step.verdict == "passed" and addresses:
        text = t("cli.doctor.addresses", addresses=", ".join(address for address, _ in addresses))
    closed = [address for address, allowed in addresses if not allowed]
    if step.name == "egress" and step.verdict == "failed" and closed:
        text = t("cli.doctor.closed", text=text, addresses=", ".join(closed))
    return tables.inert(text)


def _at(now: int, seconds: float) -> str:
    return dates.show(now + round(seconds * SECOND)).replace("T", " ")[:19] + " UTC"


async def doctor(config: Config, arguments: Namespace, say: Say) -> None:
    """Examine a URL, or a webhook by its id. Raise Ended when a delivery would fail."""
    if arguments.target is None:
        await _list_moved(config, say, as_json=arguments.json)
        return
    clock, ids = (arguments.parts or PARTS).clock, Ids()
    guard = Guard(rules_of(config.egress), clock)
    examiner = doctor_of(config, guard, clock, ids)
    own = not is_id(arguments.target) and arguments.secret is None
    try:
        if is_id(arguments.target):
            _, ring, delivery, endpoint = await request_for(config, arguments.target.lower(), ids)
            examination = await examiner.examine_webhook(ring, delivery, endpoint)
        else:
            secret = new_secret(ids.token(SECRET_BYTES)) if own else arguments.secret
            _must_sign(secret)
            request = pings.of_url(
                arguments.target, secret, clock=clock, ids=ids,
                timeout_s=arguments.timeout or settings_of(config).timeout,
            )  # fmt: skip
            examination = await examiner.examine(request)
        addresses = await _addresses(guard, examination)
    finally:
        await examiner.close()
        await guard.close()
    if arguments.json:
        say(json.encode(record(examination, addresses)).decode())
    else:
        for line in lines(examination, addresses, own_secret=own):
            say(line)
    if examination.failed is not None:
        raise Ended(FAILED)


async def _list_moved(config: Config, say: Say, *, as_json: bool) -> None:
    """List the webhooks that earlier versions requested at another path."""
    t, listed = spoken(), 0
    after: str | None = ""
    async with existing(config) as db:
        while after is not None:
            webhooks, after = await db.read(requested_urls.moved, after, WEBHOOKS_AT_ONCE)
            listed += len(webhooks)
            for webhook in webhooks:
                if as_json:
                    fields = {"id": webhook.id, "url": webhook.url, "before": webhook.before}
                    say(json.encode(fields).decode())
                    continue
                say(f"{webhook.id}  {tables.inert(webhook.url)}")
                say(t("cli.doctor.before", path=tables.inert(webhook.before)))
    if not as_json:
        say(t("cli.doctor.moved" if listed else "cli.doctor.none_moved"))


async def request_for(
    config: Config, webhook_id: str, ids: Ids
) -> tuple[Webhook, KeyRing, Claimed, Endpoint]:
    """Return a webhook and what makes a test request to it. Raise CannotStart if there is none."""
    async with existing(config) as db:
        webhook = await db.read(webhooks.one, webhook_id)
        if webhook is None:
            raise CannotStart(
                f"there is no webhook {webhook_id}; its page in the console shows the id"
            )
        ring = await startup.open_keys(config, db, ids)
        actor = Actor(webhook.owner_id, "system")
        delivery, endpoint = await db.read(pings.of_webhook, actor, webhook_id)
    return webhook, ring, delivery, endpoint


def _must_sign(secret: str) -> None:
    try:
        sign_standard((secret,), "", 0, b"")
    except ValueError:
        raise CannotStart(
            "--secret must be the text that the console has shown, whsec_ included"
        ) from None


async def _addresses(guard: Guard, examination: Examination) -> Addresses:
    """Return the addresses of the host with the verdict on each, which only operators may see."""
    if any(step.name == "dns" and step.verdict == "skipped" for step in examination.steps):
        return []
    with suppress(Refused, LookupFailed):
        target = check_url(examination.url, guard.rules)
        if not target.literal:
            return await guard.judge(target.host, target.port)
    return []
