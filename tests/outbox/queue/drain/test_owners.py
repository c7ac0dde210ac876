"""Claims go round owners, then round the lanes of each; their work does not grow with owners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import claim
from outbox.queue.drain.cycle import take
from outbox.queue.drain.fanout import fan_out
from outbox.queue.drain.owners import OWNERS_AT_ONCE
from outbox.queue.state.deliveries import Capacity, Claimed
from outbox.queue.state.fair_shares import OTHERS_SHARE, Owner, Rank, Shares
from outbox.worker.send_counts import Owners
from outbox.worker.windows import MOST_BYTES
from tests.support.counted import Counted
from tests.support.drain import add_webhook, make, ring, rows

URL = "http://127.0.0.1:9/"
MANY = 300
"""More lanes than one look at the longest waiting ones takes."""
SLOTS = 256
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


async def fanned(db: Database) -> None:
    while (await db.write(fan_out, capacity(0, name="none"))).more:
        pass


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


async def test_owners_take_turns_when_places_come_one_by_one(db: Database) -> None:
    await lanes_of(db, owner(1), 30)
    await lanes_of(db, owner(2), 3, each=4)
    await lanes_of(db, owner(3), 1, each=12)
    node = Node(db)
    turns = [one for _ in range(12) for one in await node.claim(1)]
    assert [set(turns[n : n + 3]) for n in range(0, 12, 3)] == [{owner(1), owner(2), owner(3)}] * 4


async def test_each_of_many_owners_gets_its_turn_beside_one_with_many_lanes(db: Database) -> None:
    others = 2 * OWNERS_AT_ONCE + 2
    await lanes_of(db, owner(999), MANY)
    await many_owners(db, others)
    node = Node(db)
    turns: list[str] = []
    for _ in range(2 * others // 8):
        turns += await node.claim(8)
    assert Counter(turns).keys() == {owner(n) for n in (*range(1, others + 1), 999)}


async def test_the_owner_with_the_fewest_sends_comes_first(db: Database) -> None:
    for number in (1, 2, 3):
        await lanes_of(db, owner(number), 10)
    shares = Shares(owners={owner(1): Owner(held=9), owner(2): Owner(held=2)})
    claims = await db.write(claim, capacity(10, shares), {})
    assert Counter(d.owner_id for d in claims.claimed) == {owner(2): 4, owner(3): 6}


async def test_an_owner_without_sends_gets_a_place_when_all_slots_are_in_use(db: Database) -> None:
    await lanes_of(db, owner(1), MANY)
    await lanes_of(db, owner(2), 40)
    shares = Shares(further=32, owners={owner(1): Owner(held=SLOTS)})
    claims = await db.write(claim, capacity(0, shares), {})
    # Some of these places stay for the owners who come next.
    assert Counter(d.owner_id for d in claims.claimed) == {owner(2): 7}
    assert (claims.more, claims.crowded) == (False, True)
    shares = Shares(further=32 - 7, owners={owner(1): Owner(held=SLOTS), owner(2): Owner(held=7)})
    again = await db.write(claim, capacity(0, shares), {})
    assert (again.claimed, again.more, again.crowded) == ([], False, True)


async def test_failing_webhooks_get_no_place_beyond_the_slots(db: Database) -> None:
    await lanes_of(db, owner(1), 3)
    await db.write(lambda tx: tx.run("update lanes set failing = true"))
    claims = await db.write(claim, capacity(0, Shares(further=32)), {})
    assert not claims.claimed


@pytest.mark.parametrize(("further", "born"), [(0, 0), (4, 1)])
async def test_a_new_delivery_of_an_owner_without_sends_is_claimed_as_it_is_created(
    db: Database, further: int, born: int
) -> None:
    for number in (1, 2):
        await hooks(db, owner(number), 1)
        await db.write(make, "r", owner=owner(number))
    shares = Shares(further=further, owners={owner(1): Owner(held=SLOTS)})
    fanned_out, _ = await db.write(take, capacity(0, shares))
    assert [d.owner_id for d in fanned_out.claimed] == [owner(2)] * born


async def test_what_one_turn_claims_stays_within_slots_and_further_places(db: Database) -> None:
    """Before, in and after fan-out: of what is ready, of what is new, and of large bodies."""
    for number in range(1, 7):
        await lanes_of(db, owner(number), 2)
        await db.write(make, "new", owner=owner(number))
    fanned_out, claims = await db.write(take, capacity(3, Shares(further=8)))
    claimed = [*fanned_out.claimed, *(d for each in claims for d in each.claimed)]
    assert len(claimed) == 7
    assert len({d.owner_id for d in claimed}) == 6


async def ranked(db: Database, slots: int, ranks: Mapping[str, Rank], served: int = 0) -> list[str]:
    """Return the webhooks of a claim that ends at once."""
    known = {owner(1): Owner(served=served)}
    shares = Shares(owners=known, rank=lambda one: ranks.get(one, Rank.OTHER))
    claims: list[Claimed] = (await db.write(claim, capacity(slots, shares), {})).claimed
    await db.write(finish)
    return [d.webhook_id for d in claims]


async def ids(db: Database) -> list[str]:
    order = await db.read(rows, "select webhook_id from lanes order by due_at, webhook_id")
    return [row["webhook_id"] for row in order]


async def test_a_lane_with_a_slow_send_waits_for_the_others_of_its_owner(db: Database) -> None:
    await lanes_of(db, owner(1), 6, each=3)
    first, second, *rest = await ids(db)
    ranks = dict.fromkeys((first, second), Rank.SLOW)
    assert set(await ranked(db, 4, ranks)) == set(rest)
    turns = Counter(await ranked(db, 9, ranks))
    assert [turns[one] for one in rest] == [2] * 4
    assert turns[first] + turns[second] == 1


async def test_quick_lanes_of_an_owner_get_three_places_in_four(db: Database) -> None:
    await lanes_of(db, owner(1), 10, each=8)
    unknown, quick = (await ids(db))[:6], (await ids(db))[6:]
    ranks = dict.fromkeys(quick, Rank.QUICK)
    turns = [one for n in range(16) for one in await ranked(db, 1, ranks, served=n)]
    assert sum(one in quick for one in turns) == 16 - 16 // OTHERS_SHARE
    assert len(set(turns) & set(unknown)) == 16 // OTHERS_SHARE, "the others take turns too"


READ = """
select cast(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) as bigint) as n
from pg_stat_xact_user_tables
"""
STEPS = 10


async def work_of(db: Database, at_most: Capacity) -> tuple[int, int, Collection[str]]:
    """Return the statements and the rows (steps on SQLite) of a claim, and the owners claimed."""
    counted = Counted(db.apart("drain"))
    spent = 0

    async def watched(tx: Any) -> Any:
        nonlocal spent
        if db.engine == "sqlite":

            def step() -> None:
                nonlocal spent
                spent += STEPS

            connection = tx._tx._connection
            connection.set_progress_handler(step, STEPS)
            try:
                return await claim(tx, at_most, {})
            finally:
                connection.set_progress_handler(None, 0)
        before = await tx._tx.one(READ)
        claims = await claim(tx, at_most, {})
        spent = int((await tx._tx.one(READ))["n"]) - int(before["n"])
        return claims

    claims = await counted.write(watched)
    [(_, statements)] = counted.written
    return len(statements), spent, {d.owner_id for d in claims.claimed}


@pytest.mark.parametrize(
    ("slots", "further"), [(SLOTS, 32), (0, 32), (1, 32)], ids=["free", "full", "one"]
)
async def test_the_work_of_a_claim_does_not_grow_with_owners(
    db: Database, slots: int, further: int
) -> None:
    """Beside an owner with more due lanes than a claim looks at: as in an onset of hanging."""
    work: dict[int, tuple[int, int]] = {}
    await lanes_of(db, owner(9_999), MANY)
    shares = Shares(further=further, owners={owner(9_999): Owner(held=SLOTS - slots)})
    present = 0
    for count in (1, 100, 1_000):
        await db.write(empty, present)
        await many_owners(db, count)
        present = count
        statements, spent, served = await work_of(db, capacity(slots, shares))
        work[count] = statements, spent
        assert any(one != owner(9_999) for one in served)
        await db.write(restore)
    assert work[1_000][0] <= work[1][0] + 2, work
    # A row that was changed before may be read twice on PostgreSQL.
    assert work[1_000][1] <= 2 * work[100][1], work


async def empty(tx: Tx, _: int) -> None:
    await tx.run("delete from deliveries where owner_id <> $1", owner(9_999))
    await tx.run("delete from events where owner_id <> $1", owner(9_999))
    await tx.run("delete from webhooks where owner_id <> $1", owner(9_999))


async def restore(tx: Tx) -> None:
    """Undo a claim."""
    await tx.run(
        "update deliveries set state = 'ready', claim = null, node_id = null, attempts = 0"
    )
    await tx.run("update lanes set due_at = 1, turned_at = 0, served = 0")
