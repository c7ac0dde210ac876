"""What is behind, what of it the installation is late with, and of how many owners."""

import pytest

from outbox.database.transaction import Database, Tx
from outbox.durations import SECOND
from outbox.queue.log.backlogs import (
    EACH_OWNER,
    MOST_COMPARED,
    MOST_LISTED,
    Backlog,
    Backlogs,
    Behind,
)
from outbox.queue.log.gauges import Readings
from outbox.queue.state.lanes import due_now
from outbox.queue.upkeep.owner_moves import FAR
from tests.support.rows import add_waiting, add_webhooks, pause, webhook_id

OLD = 3_600


def waiting(owner: str, deliveries: int, age: float, late: float | None = None) -> Backlog:
    return Backlog(owner, deliveries, age, age if late is None else late)


def test_owners_are_counted_however_many_webhooks_each_has() -> None:
    behind = Behind()
    for number in range(50):
        behind.put(f"a{number}", waiting("ana", 10, 900.0 + number))
    behind.put("b", waiting("bia", 7, 700.0))
    behind.put("c", waiting("caio", 5, 61.0))
    behind.put("d", waiting("davi", 5, 59.0))
    found = behind.backlogs()
    assert (found.late, found.late_owners, found.long_late_owners) == (52, 3, 2)
    # One owner with many webhooks is no more the installation's fault than one with a large one.
    assert (found.largest, found.rest) == (500, 12)
    assert [w for w in found.webhooks if w.startswith("a")] == ["a49", "a48", "a47"][:EACH_OWNER]
    assert found.owners.keys() == {"ana", "bia", "caio"}


def test_what_waits_for_its_rate_or_its_receiver_is_named_and_nobody_is_late() -> None:
    behind = Behind()
    for number in range(3):
        behind.put(f"w{number}", waiting(f"owner {number}", 200, 1_800.0, 0.0))
    found = behind.backlogs()
    assert (found.late, found.late_owners, found.long_late_owners) == (0, 0, 0)
    assert (found.largest, found.rest) == (0, 0)
    assert {w: one.age for w, one in found.webhooks.items()} == dict.fromkeys(
        ("w0", "w1", "w2"), 1_800.0
    )
    assert {o: one.deliveries for o, one in found.owners.items()} == dict.fromkeys(
        ("owner 0", "owner 1", "owner 2"), 200
    )
    # Late a little beside that.
    behind.put("w1", waiting("owner 1", 200, 1_800.0, 600.0))
    behind.put("w2", waiting("owner 2", 150, 1_800.0, 599.0))
    found = behind.backlogs()
    assert (found.late, found.late_owners, found.long_late_owners) == (2, 2, 1)
    assert (found.largest, found.rest) == (200, 150)


def test_the_totals_follow_each_webhook() -> None:
    behind = Behind()
    for age, late in ((700.0, 700.0), (700.0, 0.0), (30.0, 30.0), (90.0, 90.0), (90.0, 10.0)):
        for owner in ("ana", "bia"):
            behind.put(owner, waiting(owner, 4, age, late))
        found = behind.backlogs()
        owners = 2 if late >= 60 else 0
        assert (found.late, found.late_owners) == (owners, owners)
        assert (found.largest, found.rest) == ((4, 4) if owners else (0, 0))
        assert len(found.webhooks) == (2 if age >= 60 else 0)
    for owner in ("ana", "bia", "nobody"):
        behind.drop(owner)
    assert behind.backlogs() == Backlogs()


def test_those_that_wait_for_their_rate_hide_none_that_is_late() -> None:
    behind = Behind()
    for number in range(MOST_COMPARED + 100):
        behind.put(f"w{number}", waiting("ana", 1, 9_000.0, 0.0))
    for owner in ("bia", "caio", "davi"):
        behind.put(owner, waiting(owner, 50, 700.0))
    found = behind.backlogs()
    assert (found.late, found.late_owners, found.long_late_owners) == (3, 3, 3)
    assert (found.largest, found.rest) == (50, 100)
    assert len(found.webhooks) <= MOST_LISTED


LANES = {
    # By their webhook: the wait of the lane from now on in seconds, until when its rate holds it,
    # and how late the installation is; the oldest delivery has been due for an hour.
    1: (None, 0, OLD),
    2: (8, 8, 0),  # between two claims of its rate
    3: (120, 0, 0),  # Retry-After
    4: (86_400, 0, 0),  # the longest one
    5: (0, 0, 0),
    6: (-5, -5, 5),
    7: (-90, 0, 90),
    8: (-700, -700, 700),
    9: (-2 * OLD, 0, OLD),
    10: (FAR // SECOND, FAR // SECOND, 0),  # its owner moves
    11: (9, 40, 0),
}


@pytest.mark.parametrize("rows", [1, 4, 10_000])
async def test_the_installation_is_late_from_the_end_of_a_lanes_wait_on(
    db: Database, rows: int
) -> None:
    async def fill(tx: Tx) -> None:
        now = await due_now(tx)
        await add_webhooks(tx, 1, 13)
        for table, column in (("webhooks", "id"), ("lanes", "webhook_id")):
            await tx.run(f"update {table} set owner_id = 'of ' || {column}")
        for number in range(1, 14):
            await add_waiting(tx, number, 3, now - OLD * SECOND, 60 * SECOND)
            await add_waiting(tx, number, 2, now - 2 * OLD * SECOND, retry=True)
        for number, (wait, rate, _) in LANES.items():
            if wait is not None:
                await tx.run(
                    "update lanes set wait_until = $2, rate_until = $3 where webhook_id = $1",
                    webhook_id(number), now + wait * SECOND, now + rate * SECOND,
                )  # fmt: skip
        await pause(tx, 12)
        await tx.run("update lanes set probe_at = $1 where webhook_id = 'w000013'", now - SECOND)

    await db.write(fill)
    readings = Readings(db, seconds=0.0, rows=rows)
    while not readings.complete:
        found = (await readings.take(lambda _: [])).backlogs

    assert found.webhooks.keys() == {webhook_id(number) for number in LANES}
    for number, (*_, late) in LANES.items():
        one = found.webhooks[webhook_id(number)]
        assert one.deliveries == 3
        assert one.age == pytest.approx(OLD, abs=20)
        assert max(one.late, 0) == pytest.approx(late, abs=20), number
    assert (found.late, found.late_owners, found.long_late_owners) == (4, 4, 3)
    assert (found.largest, found.rest) == (3, 9)
