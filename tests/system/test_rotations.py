"""Secrets rotated under load, as outside verifiers see it.

Outside verifiers judge each request: gidgethub the signature of the body, standardwebhooks the
trio.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from gidgethub import ValidationFailure
from gidgethub.sansio import validate_event
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from outbox.database.transaction import Database
from outbox.sending import request
from outbox.sending.request import new_secret
from outbox.webhooks import secret_rotation
from outbox.webhooks.secrets import KeyRing
from tests.support.drain import Got, Inbox, add_webhook, drain, inbox, make, ring
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.system.staging import opened

WEBHOOKS = 8
EVENTS = 60
"""Of each webhook, in each of the three phases."""
AT_ONCE = 4
WAIT_SECONDS = 60.0


@dataclass
class _Owner:
    """One webhook, its secrets, and what its receiver had got when it was activated."""

    number: int
    webhook_id: str
    old: str
    new: str
    before: list[Got] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f"/{self.number}"

    @property
    def account(self) -> str:
        return f"{self.number:024x}"


async def run_rotations(engine: Engine) -> Counter[str]:
    """Rotate the secrets of some webhooks during load; return what receivers refuse, and more."""
    dice, key = random.Random(92260), ring()
    async with opened(engine) as db, inbox() as box, drain(db, key):
        owners = [await _add(db, key, box, number) for number in range(WEBHOOKS)]
        await asyncio.gather(*(_rotate(db, key, box, owner, dice) for owner in owners))
        found: Counter[str] = Counter()
        for owner in owners:
            got = [each for each in box.got if each.path == owner.path]
            found["requests"] += len(got)
            found["missing"] += max(3 * EVENTS - len(got), 0)
            _judge(found, owner, got)
    print(json.dumps(found))
    return found


async def _add(db: Database, key: KeyRing, box: Inbox, number: int) -> _Owner:
    account = f"{number:024x}"
    webhook_id, old = await add_webhook(db, key, f"{box.url}/{number}", owner=account)
    return _Owner(number, webhook_id, old, new_secret(f"secret {number:025}".encode()))


async def _rotate(
    db: Database, key: KeyRing, box: Inbox, owner: _Owner, dice: random.Random
) -> None:
    """Write without a pause; stage and activate at random moments in between."""
    for phase in range(3):
        moment = dice.randrange(EVENTS // 4, EVENTS // 2)
        for number in range(0, EVENTS, AT_ONCE):
            await asyncio.gather(
                *(
                    db.write(make, f"{phase}-{number + n}", owner=owner.account)
                    for n in range(AT_ONCE)
                )
            )
            if phase == 0 and number <= moment < number + AT_ONCE:
                assert await db.write(secret_rotation.stage, owner.webhook_id, owner.new, key)
        if phase == 1:
            # As many as the first phase has; the others are on their way.
            owner.before = await box.until(EVENTS, owner.path, seconds=WAIT_SECONDS)
            assert await db.write(secret_rotation.activate, owner.webhook_id)
    await box.until(3 * EVENTS, owner.path, seconds=WAIT_SECONDS)


def _judge(found: Counter[str], owner: _Owner, got: list[Got]) -> None:
    """Count what each kind of receiver would refuse."""
    both = (owner.old, owner.new)
    for each in owner.before:
        found["before activation"] += 1
        found["bad: old secret before activation"] += not _plain(each, owner.old)
    for each in got:
        after = json.loads(each.body)["data"]["id"].startswith("2-")
        found["activated meanwhile"] += after
        found["bad: both secrets"] += not any(_plain(each, secret) for secret in both)
        found["bad: new secret after activation"] += after and not _plain(each, owner.new)
        found["bad: trio, old secret"] += not _trio(each, owner.old)
        staged = not json.loads(each.body)["data"]["id"].startswith("0-")
        found["bad: trio, new secret"] += staged and not _trio(each, owner.new)


def _plain(got: Got, secret: str) -> bool:
    try:
        validate_event(got.body, signature=got.headers["X-Webhook-Signature"], secret=secret)
    except ValidationFailure:
        return False
    return True


def _trio(got: Got, secret: str) -> bool:
    try:
        Webhook(secret).verify(got.body, got.headers)
    except WebhookVerificationError:
        return False
    return True


def bad(found: Counter[str]) -> dict[str, int]:
    return {name: count for name, count in found.items() if name.startswith("bad") and count}


@ENGINES
async def test_no_receiver_refuses_a_request(engine: Engine) -> None:
    found = await run_rotations(engine)
    assert bad(found) == {}
    assert not found["missing"]
    # Not few on one side of activations.
    assert min(found["before activation"], found["activated meanwhile"]) >= WEBHOOKS * EVENTS


async def test_signatures_of_one_secret_alone_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    standard = request.sign_standard

    def current(secrets: Sequence[str], message_id: str, timestamp: int, body: bytes) -> str:
        return standard(secrets[:1], message_id, timestamp, body)

    monkeypatch.setattr(request, "sign_standard", current)
    assert bad(await run_rotations("sqlite"))
