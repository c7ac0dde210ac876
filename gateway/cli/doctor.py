"""`carteiro doctor`: examines a receiver, by its URL or as the webhook that it belongs to."""

from argparse import Namespace
from contextlib import suppress

from msgspec import json

from gateway.cli import examinations
from gateway.cli.commands import Say, existing
from gateway.cli.examinations import Addresses
from gateway.domain.webhooks import pings
from gateway.records.access import Actor
from gateway.server import startup
from gateway.server.config import Config
from gateway.server.delivery import doctor_of, rules_of, settings_of
from outbox import webhooks
from outbox.clock import SystemClock
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids, is_id
from outbox.sending.guard import Guard
from outbox.sending.lookups import LookupFailed
from outbox.sending.request import SECRET_BYTES, new_secret, sign_standard
from outbox.sending.urls import Refused, check_url
from outbox.worker.doctor import Doctor, Examination


class Unwell(OutboxError):
    """A delivery to this receiver would fail; the text is the step and its sentence."""


async def doctor(config: Config, given: Namespace, say: Say) -> None:
    """Examine a URL, or a webhook by its id. Raise Unwell when a delivery would fail."""
    clock, ids = SystemClock(), Ids()
    guard = Guard(rules_of(config.egress), clock)
    made = doctor_of(config, guard, clock, ids)
    own = not is_id(given.target) and given.secret is None
    try:
        if is_id(given.target):
            found = await _of_webhook(config, made, given.target.lower(), ids)
        else:
            secret = new_secret(ids.token(SECRET_BYTES)) if own else given.secret
            _must_sign(secret)
            request = pings.of_url(
                given.target, secret, clock=clock, ids=ids,
                timeout_s=given.timeout or settings_of(config).timeout,
            )  # fmt: skip
            found = await made.examine(request)
        addresses = await _addresses(guard, found)
    finally:
        await made.close()
        await guard.close()
    if given.json:
        say(json.encode(examinations.record(found, addresses)).decode())
    else:
        for line in examinations.lines(found, addresses, own_secret=own):
            say(line)
    if found.failed is not None:
        raise Unwell(examinations.reason(found.failed))


async def _of_webhook(config: Config, made: Doctor, webhook_id: str, ids: Ids) -> Examination:
    async with existing(config) as db:
        webhook = await db.read(webhooks.one, webhook_id)
        if webhook is None:
            raise CannotStart(
                f"there is no webhook {webhook_id}; its page in the console shows the id"
            )
        ring = await startup.open_keys(config, db, ids)
        actor = Actor(webhook.owner_id, "system")
        delivery, endpoint = await db.read(pings.of_webhook, actor, webhook_id)
    return await made.examine_webhook(ring, delivery, endpoint)


def _must_sign(secret: str) -> None:
    try:
        sign_standard((secret,), "", 0, b"")
    except ValueError:
        raise CannotStart(
            "--secret must be the text that the console has shown, whsec_ included"
        ) from None


async def _addresses(guard: Guard, found: Examination) -> Addresses:
    """Return the addresses of the host with the verdict on each, which only operators may see."""
    with suppress(Refused, LookupFailed):
        target = check_url(found.url, guard.rules)
        if not target.literal:
            return await guard.judge(target.host, target.port)
    return []
