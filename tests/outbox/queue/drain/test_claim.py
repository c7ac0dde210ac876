"""Claims: whose turn it is, which places each lane gets, and how much fits into memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.claim import RETRY_SHARE, Taken, claim
from outbox.queue.drain.loading import SMALL_BODY
from outbox.queue.state.claimed_deliveries import Capacity, Claimed
from outbox.worker.windows import MOST_BYTES
from tests.support.drain import add_webhook, make_many, ring, rows
from tests.support.lines import fanned

URL = "http://127.0.0.1:9/"


def capacity(
    slots: int,
    *,
    failing: int = 0,
    first: int = 0,
    windows: Mapping[str, int] | None = None,
    body_bytes: int = MOST_BYTES,
) -> Capacity:
    return Capacity("node", f"claim-{slots}", slots, failing, first, windows or {}, body_bytes)


async def backlog(db: Database, lanes: int, each: int) -> list[str]:
    """Create webhooks with `each` deliveries waiting; return their ids."""
    key = ring()
    ids = [(await add_webhook(db, key, URL))[0] for _ in range(lanes)]
    await db.write(make_many, each)
    await fanned(db)
    return ids


async def taken(db: Database, at_most: Capacity) -> list[Claimed]:
    """Claim and finish at once, so that only turns and windows count."""
    claims: Taken = await db.write(claim, at_most, {})
    await db.write(finish)
    return claims.claimed


async def finish(tx: Tx) -> None:
    """Finish deliveries in flight and update their lanes, as a settle does."""
    await tx.run("update deliveries set state = 'delivered', claim = null where claim is not null")
    await tx.run(
        """
        update lanes set due_at = turned_at
        where webhook_id in (select webhook_id from deliveries where state = 'ready')
        """
    )


@pytest.mark.parametrize("slots", [1, 4, 7])
async def test_of_n_lanes_that_wait_each_gets_its_turn_within_n_turns(
    db: Database, slots: int
) -> None:
    ids = await backlog(db, 10, 40)
    turns: list[str] = []
    for _ in range(math.ceil(60 / slots)):
        got = await taken(db, capacity(slots, windows=dict.fromkeys(ids, 1)))
        assert len(got) == slots
        turns += [delivery.webhook_id for delivery in got]
    for start in range(0, len(turns) - 2 * len(ids), slots):
        # The order of lanes whose turns came in one claim is free.
        assert set(turns[start : start + len(ids) + slots - 1]) == set(ids)


async def failing_lane(db: Database, webhook_id: str) -> None:
    async def fail(tx: Tx) -> None:
        await tx.run("update lanes set failing = true where webhook_id = $1", webhook_id)

    await db.write(fail)


async def test_failing_webhooks_get_no_more_than_their_share(db: Database) -> None:
    ids = await backlog(db, 6, 60)
    for webhook_id in ids:
        await failing_lane(db, webhook_id)
    got = await taken(db, capacity(64, failing=4, first=1, windows=dict.fromkeys(ids, 32)))
    assert len(got) == 4


async def test_every_fourth_place_of_a_lane_goes_to_retries_while_both_wait(db: Database) -> None:
    [webhook_id] = await backlog(db, 1, 60)

    async def age(tx: Tx) -> None:
        await tx.run(
            """
            update deliveries set retry = true
            where id in (select id from deliveries order by next_at limit 20)
            """
        )

    await db.write(age)
    kinds: list[bool] = []
    for slots in (1, 1, 1, 1, 2, 2, 8, 1, 1, 2):
        got = await taken(db, capacity(slots, windows={webhook_id: slots}))
        kinds += [delivery.attempt.retry for delivery in got]
    assert len(kinds) == 20
    assert sum(kinds) == len(kinds) // RETRY_SHARE
    got = await taken(db, capacity(60, windows={webhook_id: 60}))
    assert sum(one.attempt.retry for one in got) == 15, "what nobody else wants is theirs too"


async def test_large_bodies_are_taken_while_there_is_room_for_them(db: Database) -> None:
    [webhook_id] = await backlog(db, 1, 5)
    size = SMALL_BODY * 2

    async def enlarge(tx: Tx) -> None:
        await tx.run("update events set body = $1 where seq in (2, 3, 4)", b"x" * size)

    await db.write(enlarge)
    crowded = capacity(8, windows={webhook_id: 8}, body_bytes=size * 2)
    claims = await db.write(claim, crowded, {})
    assert sorted(len(d.event.body or b"") > SMALL_BODY for d in claims.claimed) == [
        False, False, True, True,
    ]  # fmt: skip
    states = await db.read(rows, "select state, attempts, claim from deliveries order by next_at")
    [left] = [row for row in states if row["state"] == "ready"]
    assert (left["attempts"], left["claim"]) == (0, None)
    again = await db.write(claim, capacity(8, windows={webhook_id: 8}), {})
    assert again.claimed == []
    assert again.wait_us is not None
    assert 0 < again.wait_us <= 1_000_000, "the lane is looked at again, but not at once"


async def test_more_failing_lanes_than_one_look_takes_are_looked_at_at_once(db: Database) -> None:
    ids = await backlog(db, 12, 1)
    await db.write(lambda tx: tx.run("update lanes set failing = true"))
    claims = await db.write(claim, capacity(8, failing=1, windows=dict.fromkeys(ids, 0)), {})
    assert not claims.claimed
    assert claims.more
