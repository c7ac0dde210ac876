"""Run `carteiro move`, and check that an owner is where he belongs, wholly and once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from gateway.domain.contacts import person_erasures
from gateway.domain.privacy import certificates
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.chains import walked
from tests.support.drain import drain, inbox
from tests.support.movers import PAYMENT, House, Left, look, opened
from tests.support.process import command
from tests.support.rest import UNLIMITED
from tests.support.site import serving

# Fan-out of the last events is done before the copy.
LATE = {"deliveries", "events", "figures", "lanes"}


def words(house: House, target: str, keys: Path, *more: str) -> list[str]:
    """Return the arguments that move the first owner."""
    return ["move", house.email, "--to", target, "--key-file", str(keys), *more]


def settings(house: House) -> dict[str, str]:
    """Return the settings of the source."""
    return {
        "CARTEIRO_DATABASE__URL": house.url, "CARTEIRO_SECRETS__KEY_FILE": str(house.keys),
    }  # fmt: skip


def run(house: House, target: str, keys: Path, *more: str, status: int = 0) -> str:
    """Run `carteiro move` for the first owner."""
    done = command(*words(house, target, keys, *more), folder=keys.parent, **settings(house))
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def has_moved(house: House, target: str, before: Left) -> None:
    """Check that the source has nothing of the owner and the target all of it, once."""
    left = asyncio.run(look(house.url, house.owners))
    there = asyncio.run(look(target, house.owners))
    assert left.of(0) == {}
    assert left.mentions == {"owners": 1}
    assert left.marks_are_true
    assert {t: n for t, n in left.of(1).items() if t not in LATE} == {
        t: n for t, n in before.of(1).items() if t not in LATE
    }
    assert there.feed == before.feed
    assert {t: n for t, n in there.of(0).items() if t not in LATE} == {
        t: n for t, n in before.of(0).items() if t not in LATE
    }
    assert there.of(1) == {}
    assert before.waiting <= there.waiting
    assert max(there.waiting.values()) == 1


async def opens(tx: Tx, house: House, ring: KeyRing) -> None:
    """Check that the keys of the target open and confirm what the source had sealed."""
    row = await tx.one("select secret from webhooks where id = $1", house.webhook)
    assert row is not None
    assert ring.open(bytes(row["secret"]), house.webhook).decode() == house.secret
    [secret] = await tx.all("select store_id, secret from payment_secrets")
    assert ring.open(bytes(secret["secret"]), secret["store_id"]) == PAYMENT
    [erasure] = await person_erasures.page(tx, house.mover, None, 10)
    assert certificates.is_intact(erasure, ring)


async def goes_on(house: House, target: str, keys: Path) -> None:
    """Deliver in the target what waited, with the same secret, and write something more."""
    ring = read_key_file(keys, Ids())
    waiting = (await look(target, house.owners)).waiting
    verdict = await walked(target, ring)
    assert not verdict.faults
    assert verdict.judge.signed["right"]
    db = await opened(target)
    try:
        await db.read(opens, house, ring)
        async with inbox() as receiver, drain(db, ring) as running, serving(db, UNLIMITED) as site:

            async def point_here(tx: Tx) -> None:
                await tx.run("update webhooks set url = $1 || '/' || id", receiver.url)

            await db.write(point_here)
            await receiver.until(len(waiting))
            async with site.http.post(
                "/api/contacts", json={"name": "New"}, headers=house.headers
            ) as made:
                assert made.status == 201, await made.text()
            webhooks = {webhook for _, webhook in waiting}
            await receiver.until(len(waiting) + len(webhooks))
            await running.watch.until("delivery_finished", len(waiting) + len(webhooks))
        got = Counter((one.headers["X-Webhook-Id"], one.path[1:]) for one in receiver.got)
        assert max(got.values()) == 1
        assert set(waiting) < set(got)
    finally:
        await db.close()
    assert not (await walked(target, ring)).faults
