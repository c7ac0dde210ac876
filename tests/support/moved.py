"""Run `carteiro move`, and check that an owner is where he belongs, wholly and once."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from gateway.domain.contacts import person_erasures
from gateway.domain.privacy import certificates
from gateway.server.parts import Parts
from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState
from outbox.webhooks.key_files import read_key_file
from outbox.webhooks.secrets import KeyRing
from tests.support.chains import walked
from tests.support.drain import drain, inbox
from tests.support.movers import PAYMENT, House, Left, look, opened
from tests.support.process import command_of
from tests.support.rest import UNLIMITED
from tests.support.site import serving

PATIENT = Parts(lock_tries=2_400)
"""A move gives up after ten seconds in which others hold its locks: on a busy machine a maintenance
process of PostgreSQL may hold one for longer."""
# Fan-out of the last events is done before the copy.
LATE = {"deliveries", "events", "figures", "lanes"}
GUARDS = """
select (select count(*) from pg_proc where proname like 'moving%')
  + (select count(*) from pg_trigger where tgname like 'moving%')
  + (select count(*) from move_changes)
"""


@dataclass(frozen=True)
class Pair:
    """A house, and the empty database beside it with its keys."""

    house: House
    target: str
    keys: Path

    @property
    def settings(self) -> dict[str, str]:
        """The settings of the source."""
        return {
            "CARTEIRO_DATABASE__URL": self.house.url,
            "CARTEIRO_SECRETS__KEY_FILE": str(self.house.keys),
        }

    def words(self, *more: str) -> list[str]:
        """Return the arguments that move the first owner."""
        keys = str(self.keys)
        return ["move", self.house.email, "--to", self.target, "--key-file", keys, *more]

    def source(self) -> Left:
        """Read what the source has."""
        return asyncio.run(look(self.house.url, self.house.owners))

    def there(self) -> Left:
        """Read what the target has."""
        return asyncio.run(look(self.target, self.house.owners))

    def states(self) -> list[str]:
        """Return where the first owner is, by the source and by the target."""
        urls = (self.house.url, self.target)
        return [str(asyncio.run(standing(url, self.house.mover)).state) for url in urls]

    def guards(self) -> list[int]:
        """Return how much there is of guards and their notes in both databases of PostgreSQL."""
        return [asyncio.run(_guards(url)) for url in (self.house.url, self.target)]


async def standing(url: str, owner_id: str) -> MoveState:
    """Return where a database says that an owner is."""
    db = await opened(url)
    try:
        return await db.read(owner_moves.standing, owner_id)
    finally:
        await db.close()


async def _guards(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(GUARDS))
    finally:
        await connection.close()


def run(pair: Pair, *more: str, status: int = 0, parts: Parts = PATIENT) -> str:
    """Run `carteiro move` for the first owner."""
    folder = pair.keys.parent
    done = command_of(parts, *pair.words(*more), folder=folder, **pair.settings)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def has_moved(pair: Pair, before: Left) -> None:
    """Check that the source has nothing of the owner and the target all of it, once."""
    left, there = pair.source(), pair.there()
    assert left.of(0) == {}
    assert left.mentions == {"owners": 1}
    assert left.marks_are_true
    assert _lasting(left, 1) == _lasting(before, 1)
    assert there.feed == before.feed
    assert _lasting(there, 0) == _lasting(before, 0)
    assert there.of(1) == {}
    assert before.waiting <= there.waiting
    assert max(there.waiting.values()) == 1


def _lasting(left: Left, owner: int) -> dict[str, int]:
    return {table: count for table, count in left.of(owner).items() if table not in LATE}


def goes_on(pair: Pair) -> None:
    """Deliver in the target what waited, with the same secret, and write something more."""
    asyncio.run(_goes_on(pair.house, pair.target, read_key_file(pair.keys, Ids())))


async def _goes_on(house: House, target: str, ring: KeyRing) -> None:
    waiting = (await look(target, house.owners)).waiting
    verdict = await walked(target, ring)
    assert not verdict.faults
    assert verdict.judge.signed["right"]
    db = await opened(target)
    try:
        await db.read(_opens, house, ring)
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


async def _opens(tx: Tx, house: House, ring: KeyRing) -> None:
    """Check that the keys of the target open and confirm what the source had sealed."""
    row = await tx.one("select secret from webhooks where id = $1", house.webhook)
    assert row is not None
    assert ring.open(bytes(row["secret"]), house.webhook).decode() == house.secret
    [secret] = await tx.all("select store_id, secret from payment_secrets")
    assert ring.open(bytes(secret["secret"]), secret["store_id"]) == PAYMENT
    [erasure] = await person_erasures.page(tx, house.mover, None, 10)
    assert certificates.is_intact(erasure, ring)
