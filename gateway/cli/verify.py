"""`carteiro verify`: walks the chains of attempts and names what was changed or is missing."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import json

from gateway.cli.commands import Say
from gateway.cli.data import backup_keys
from gateway.cli.data.target_filling import must_be_known, own_tables
from gateway.records.values import dates
from gateway.server import startup
from gateway.server.config import Config
from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.transfer import Place
from outbox.durations import DAY
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids, is_id
from outbox.queue.proof import witness
from outbox.queue.proof.attempt_proof import Signed
from outbox.queue.proof.verification import Verdict, verify
from outbox.queue.proof.witness import Noted, NotWitnessed, Witness

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


async def run(config: Config, arguments: Namespace, say: Say) -> None:
    """Verify the log of all webhooks, or of one. Raise Changed, CannotStart."""
    webhook_id = _webhook(arguments)
    seen = _witness(arguments)
    noted = _noted(arguments) if seen is None else seen.ends
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
        days = arguments.retention_days or config.retention.deliveries_days
        verdict = await verify(source, ring, webhook_id, noted, place.clock.wall() - days * DAY)
    if webhook_id and not verdict.heads and not verdict.attempts:
        raise CannotStart(f"there is no attempt of a webhook {webhook_id} in the log")
    if arguments.json:
        say(json.encode(_record(verdict)).decode())
    else:
        for line in _lines(verdict, seen, single=bool(webhook_id)):
            say(line)
    if verdict.faults:
        raise Changed(f"the log of {_count(len(verdict.faults), 'webhook')} was changed")


def _webhook(arguments: Namespace) -> str:
    if arguments.webhook is None:
        return ""
    if not is_id(arguments.webhook):
        raise CannotStart(f"{arguments.webhook} is not the id of a webhook")
    return str(arguments.webhook).lower()


def _witness(arguments: Namespace) -> Witness | None:
    """Return what the checkpoints note, when their public keys have signed them."""
    if arguments.checkpoint is None:
        if arguments.public_key is not None:
            raise CannotStart("--public-key needs --checkpoint")
        return None
    if arguments.noted is not None:
        raise CannotStart("give either --noted or --checkpoint")
    if arguments.public_key is None:
        raise CannotStart(
            "--checkpoint needs --public-key: a whpk_ text, or a copy of "
            "/.well-known/carteiro/keys that was saved with the checkpoint"
        )
    text = arguments.public_key
    keys = witness.public_keys(text if text.startswith("whpk_") else _text(text))
    if not keys:
        raise CannotStart(f"there is no Ed25519 public key in --public-key {text}")
    try:
        return witness.read(_text(arguments.checkpoint), keys)
    except NotWitnessed as fault:
        raise Changed(f"--checkpoint {arguments.checkpoint}: {fault}") from None


def _text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except UnicodeDecodeError:
        raise CannotStart(f"{path} is not a text file") from None
    except OSError as error:
        raise CannotStart(f"{path} cannot be read: {error.strerror}") from None


def _noted(arguments: Namespace) -> Mapping[str, Sequence[Noted]]:
    if arguments.noted is None:
        return {}
    match = NOTED.fullmatch(arguments.noted)
    if match is None or arguments.webhook is None:
        raise CannotStart("--noted needs --webhook and the text that an earlier verify printed")
    return {_webhook(arguments): [Noted(int(match[1]), match[2])]}


def _lines(verdict: Verdict, seen: Witness | None, *, single: bool) -> list[str]:
    signed = verdict.judge.signed
    lines = [
        f"{_count(verdict.attempts, 'attempt')} of {_count(len(verdict.heads), 'webhook')}: "
        f"{_count(signed['right'], 'signature')} right."
    ]
    if verdict.older:
        lines.append(f"{_count(verdict.older, 'attempt')} from before there were digests.")
    if verdict.judge.narrow:
        lines.append(
            f"{_count(verdict.judge.narrow, 'digest')} from before they covered the state of the "
            "delivery and name, record and time of the event."
        )
    lines += [
        f"{_count(signed[why], 'signature')} not checked: {text}."
        for why, text in UNCHECKED.items()
        if signed[why]
    ]
    if seen is not None:
        lines.append(
            f"{_count(seen.checkpoints, 'checkpoint')} up to {dates.show(seen.newest)}: "
            f"{_count(verdict.confirmed, 'end')} confirmed, {verdict.expired:,} older than the log."
        )
    lines += [fault.sentence for fault in verdict.faults]
    if single and not verdict.faults:
        lines += [f"To note: {place}:{digest}" for place, digest in verdict.heads.values()]
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _record(verdict: Verdict) -> dict[str, object]:
    return {
        "attempts": verdict.attempts, "older": verdict.older, "narrow": verdict.judge.narrow,
        "confirmed": verdict.confirmed, "expired": verdict.expired,
        "signatures": dict(verdict.judge.signed),
        "ends": {one: f"{place}:{digest}" for one, (place, digest) in verdict.heads.items()},
        "faults": verdict.faults,
    }  # fmt: skip
