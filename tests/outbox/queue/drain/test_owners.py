"""Claims go round owners, then round the lanes of each; their work does not grow with owners."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from outbox import webhooks
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.owners import OWNERS_AT_ONCE
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.state.fair_shares import Rank, Shares
from outbox.sending.request import new_secret
from outbox.webhooks import Draft
from outbox.worker.send_counts import Owners
from outbox.worker.windows import MOST_BYTES
from tests.outbox.queue.drain.test_claim import finish
from tests.support.drain import make, ring
from tests.support.lines import URL, fanned

KEY, SECRET = ring(), new_secret(b"s" * 32)
MANY = 300
"""More lanes than one look at the longest waiting ones takes."""


def owner(number: int) -> str:
    return f"{number:024x}"


def capacity(slots: int, shares: Shares | None = None, name: str = "claim") -> Capacity:
    return Capacity("node", name, slots, 0, 0, {}, MOST_BYTES, shares or Shares())


async def lanes_of(db: Database, owner_id: str, count: int) -> None:
    """Create webhooks of an owner, with a delivery waiting at each."""
    await waiting(db, *[owner_id] * count)


async def waiting(db: Database, *owners: str) -> None:
    """Create a webhook for each of these owners, then one event of each owner."""

    async def unit(tx: Tx) -> None:
        for owner_id in owners:
            await webhooks.create(
                tx, owner_id=owner_id, draft=Draft(url=URL, events=("thing.made",)),
                secret=SECRET, ring=KEY,
            )  # fmt: skip
        for owner_id in dict.fromkeys(owners):
            await make(tx, "r", owner=owner_id)

    await db.write(unit)
    await fanned(db)


@dataclass
class Node:
    """A worker's claims, each of which ends at once."""

    db: Database
    owners: Owners = field(default_factory=Owners)

    async def claim(self, slots: int) -> list[str]:
        """Return the owner of each claimed delivery."""
        shares = self.owners.shares(slots, slots, lambda _: Rank.OTHER)
        claims = (await self.db.write(claim, capacity(slots, shares), {})).claimed
        for delivery in claims:
            self.owners.start(delivery.owner_id)
            self.owners.release(delivery.owner_id)
        await self.db.write(finish)
        return [delivery.owner_id for delivery in claims]


async def test_the_lanes_of_one_owner_do_not_hide_those_of_another(db: Database) -> None:
    await lanes_of(db, owner(1), MANY)
    await lanes_of(db, owner(2), 3)
    claims = await db.write(claim, capacity(8), {})
    # Four places each; one of them finds nothing.
    assert Counter(d.owner_id for d in claims.claimed) == {owner(1): 4, owner(2): 3}


async def test_failing_lanes_of_one_owner_do_not_hide_those_of_another(db: Database) -> None:
    await lanes_of(db, owner(1), MANY)
    await lanes_of(db, owner(2), 3)
    await db.write(lambda tx: tx.run("update lanes set failing = true"))
    claims = await db.write(claim, Capacity("node", "c", 32, 8, 2, {}, MOST_BYTES), {})
    assert Counter(d.owner_id for d in claims.claimed) == {owner(1): 5, owner(2): 3}


async def test_each_of_many_owners_gets_its_turn_beside_one_with_many_lanes(db: Database) -> None:
    others = 2 * OWNERS_AT_ONCE + 2
    await lanes_of(db, owner(999), MANY)
    await waiting(db, *map(owner, range(1, others + 1)))
    node = Node(db)
    turns: list[str] = []
    for _ in range(2 * others // 8):
        turns += await node.claim(8)
    assert Counter(turns).keys() == {owner(n) for n in (*range(1, others + 1), 999)}


async def test_failing_webhooks_get_no_place_beyond_the_slots(db: Database) -> None:
    await lanes_of(db, owner(1), 3)
    await db.write(lambda tx: tx.run("update lanes set failing = true"))
    claims = await db.write(claim, capacity(0, Shares(further=32)), {})
    assert not claims.claimed
