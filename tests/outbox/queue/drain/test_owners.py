"""Claims go round owners, then round the lanes of each; their work does not grow with owners."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.owners import OWNERS_AT_ONCE
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.state.fair_shares import Rank, Shares
from outbox.worker.send_counts import Owners
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import add_webhook, make, ring
from tests.support.lines import fanned

URL = "http://127.0.0.1:9/"
MANY = 300
"""More lanes than one look at the longest waiting ones takes."""

CLONE = """
insert into {table} ({key}, owner_id, {columns})
select $1 || cast(n as text), owner_id, {columns} from {table},
  /*sqlite (with recursive c (n) as (select 1 union all select n + 1 from c where n < $3)
    select n from c) as numbers*/
  /*postgres generate_series(1, cast($3 as bigint)) as numbers(n)*/
where {key} = $2
"""
COLUMNS = {
    "webhooks": ("version", "url", "events", "description", "state", "timeout_ms", "headers",
                 "secret", "schedule", "ordered", "conditions", "operational", "since_pos",
                 "created_at", "updated_at"),
    "lanes": ("active", "failing"),
}  # fmt: skip


def owner(number: int) -> str:
    return f"{number:024x}"


def capacity(slots: int, shares: Shares | None = None, name: str = "claim") -> Capacity:
    return Capacity("node", name, slots, 0, 0, {}, MOST_BYTES, shares or Shares())


async def lanes_of(db: Database, owner_id: str, count: int, each: int = 1) -> None:
    """Create webhooks of an owner, with `each` deliveries waiting."""
    await hooks(db, owner_id, count)
    for number in range(each):
        await db.write(make, f"r{number}", owner=owner_id)
    await fanned(db)


async def hooks(db: Database, owner_id: str, count: int) -> None:
    first, _ = await add_webhook(db, ring(), URL, owner=owner_id)
    if count > 1:
        await db.write(clone, first, owner_id, count - 1)


async def clone(tx: Tx, webhook_id: str, owner_id: str, count: int) -> None:
    for table, key in (("webhooks", "id"), ("lanes", "webhook_id")):
        await tx.run(
            CLONE.format(
                table=table, key=key,
                columns=", ".join(COLUMNS[table]),
            ),
            f"{owner_id}-", webhook_id, count,
        )  # fmt: skip


async def many_owners(db: Database, count: int) -> None:
    """Create owners 1 to `count`, each with a webhook that has one delivery waiting."""
    webhook_id, _ = await add_webhook(db, ring(), URL, owner=owner(1))
    if count > 1:
        await db.write(clone, webhook_id, owner(1), count - 1)
        await db.write(disperse)

    async def write(tx: Tx) -> None:
        for number in range(1, count + 1):
            await make(tx, "r", owner=owner(number))

    await db.write(write)
    await fanned(db)


async def disperse(tx: Tx) -> None:
    """Give each cloned webhook an owner of its own."""
    cloned = await tx.all("select id from webhooks where id like $1", f"{owner(1)}-%")
    for n, row in enumerate(cloned, start=2):
        await tx.run("update webhooks set owner_id = $2 where id = $1", row["id"], owner(n))
        await tx.run("update lanes set owner_id = $2 where webhook_id = $1", row["id"], owner(n))


async def finish(tx: Tx) -> None:
    """Finish deliveries in flight and update their lanes, as a settle does."""
    await tx.run("update deliveries set state = 'delivered', claim = null where claim is not null")
    await tx.run(
        """
        update lanes set due_at = turned_at
        where webhook_id in (select webhook_id from deliveries where state = 'ready')
        """
    )


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
    await many_owners(db, others)
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
