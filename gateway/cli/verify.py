"""`carteiro verify`: walks the chains of attempts and names what was changed or is missing."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping

from msgspec import json

from gateway.cli.commands import Say
from gateway.cli.data import backup_keys
from gateway.cli.data.filling import must_be_known, own_tables
from gateway.server import startup
from gateway.server.config import Config
from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.transfer import Place
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids, is_id
from outbox.queue.proof.attempt_proof import Signed
from outbox.queue.proof.verification import Fault, Verdict, verify
from outbox.queue.state.chain import Head
from outbox.queue.upkeep.retention import DAY

FIRST_MIGRATION = 21
"""The last migration of the engine that added columns to a chain."""
NOTED = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")
UNCHECKED: Mapping[Signed, str] = {
    "replaced": "made with a secret that was replaced since",
    "no_secret": "of a deleted webhook, or of one whose secret no key here opens",
    "no_body": "over a body that was erased, or deleted with its event",
    "unsent": "of attempts that ended before they were signed",
}


class Changed(OutboxError):
    """The log was changed; the text counts the webhooks."""


async def run(config: Config, given: Namespace, say: Say) -> None:
    """Verify the log of all webhooks, or of one. Raise Changed, CannotStart."""
    webhook_id, noted = _webhook(given), _noted(given)
    settings = config.database
    place = Place(
        settings.url, SystemClock(), Ids(), settings.direct_url, settings.synchronous_commit
    )
    startup.must_exist(config)
    ring = backup_keys.of(config, place.ids)
    async with transfer_ends.snapshot(place, own_tables(place.engine)) as source:
        upto = must_be_known(source.migrations, "the database")
        if upto["outbox"] < FIRST_MIGRATION:
            raise CannotStart(
                "the database schema is older than this program; run `carteiro migrate`"
            )
        await backup_keys.must_belong(source, config, ring)
        days = given.retention_days or config.retention.deliveries_days
        found = await verify(source, ring, webhook_id, noted, place.clock.wall() - days * DAY)
    if webhook_id and not found.heads and not found.attempts:
        raise CannotStart(f"there is no attempt of a webhook {webhook_id} in the log")
    if given.json:
        say(json.encode(_record(found)).decode())
    else:
        for line in _lines(found, single=bool(webhook_id)):
            say(line)
    if found.faults:
        raise Changed(f"the log of {_count(len(found.faults), 'webhook')} was changed")


def _webhook(given: Namespace) -> str:
    if given.webhook is None:
        return ""
    if not is_id(given.webhook):
        raise CannotStart(f"{given.webhook} is not the id of a webhook")
    return str(given.webhook).lower()


def _noted(given: Namespace) -> Head | None:
    if given.noted is None:
        return None
    match = NOTED.fullmatch(given.noted)
    if match is None or given.webhook is None:
        raise CannotStart("--noted needs --webhook and the text that an earlier verify printed")
    return int(match[1]), match[2]


def _lines(found: Verdict, *, single: bool) -> list[str]:
    signed = found.judge.signed
    lines = [
        f"{_count(found.attempts, 'attempt')} of {_count(len(found.heads), 'webhook')}: "
        f"{_count(signed['right'], 'signature')} right."
    ]
    if found.older:
        lines.append(f"{_count(found.older, 'attempt')} from before there were digests.")
    if found.judge.narrow:
        lines.append(
            f"{_count(found.judge.narrow, 'digest')} from before they covered the state of the "
            "delivery and name, record and time of the event."
        )
    lines += [
        f"{_count(signed[why], 'signature')} not checked: {text}."
        for why, text in UNCHECKED.items() if signed[why]
    ]  # fmt: skip
    lines += [_sentence(fault) for fault in found.faults]
    if single and not found.faults:
        lines += [f"To note: {place}:{digest}" for place, digest in found.heads.values()]
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _sentence(fault: Fault) -> str:
    delivery = f"delivery {fault.delivery_id}"
    attempt = delivery if fault.number is None else f"attempt {fault.number} of {delivery}"
    if fault.place is None:
        return f"Webhook {fault.webhook_id}, {attempt}: {fault.what}."
    if not fault.missing:
        return f"Webhook {fault.webhook_id}, place {fault.place}, {attempt}: {fault.what}."
    behind = f", behind {attempt}" if fault.delivery_id else ""
    return f"Webhook {fault.webhook_id}, place {fault.place}{behind}: {fault.what}."


def _record(found: Verdict) -> dict[str, object]:
    return {
        "attempts": found.attempts, "older": found.older, "narrow": found.judge.narrow,
        "signatures": dict(found.judge.signed),
        "ends": {one: f"{place}:{digest}" for one, (place, digest) in found.heads.items()},
        "faults": found.faults,
    }  # fmt: skip
