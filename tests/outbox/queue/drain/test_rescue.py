"""Rescues: which of them count, how long they make a delivery wait, and when they end it.

Processes end and stand still by hand; time passes by moving what the database waits for.
"""

from __future__ import annotations

import json

import pytest

from outbox.database.transaction import Database, Row
from outbox.queue.drain.rescue import Waits, rescue
from outbox.queue.drain.settle import settle
from outbox.queue.state.claimed_deliveries import Claimed, Result
from outbox.queue.state.policy import DEFAULT_WAITS, MOST_RESCUES, RESCUES_AT_ONCE, again
from outbox.worker import live_nodes
from tests.outbox.queue.state.test_circuits import SECOND, Node, waiting
from tests.support.drain import add_webhook, make, ring, rows, run
from tests.support.lines import URL, WAITS, fanned

DAYS = 86_400

STANDS = """
select d.*, d.next_at - due_now() as due_in, l.due_at - due_now() as lane_in
from deliveries d join lanes l on l.webhook_id = d.webhook_id order by d.id
"""
POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


async def stands(db: Database) -> Row:
    """Return the only delivery, with the times until it and its lane are due."""
    [row] = await db.read(rows, STANDS)
    return row


async def die(node: Node, waits: Waits = WAITS) -> list[str]:
    """End the node's process with all that it has claimed; return the states of what it held."""
    return [one.state for one in await node.db.write(live_nodes.take_over, node.name, waits)]


def unsent(delivery: Claimed) -> Result:
    """Return the result of a delivery that is released without a request."""
    return Result(delivery, again("aborted"), None, 0, (), URL, "node")


async def deaths(node: Node, times: int) -> list[float]:
    """End the process this often while it sends the delivery; return the waits in seconds."""
    waits: list[float] = []
    for _ in range(times):
        [_] = await node.claim()
        assert await die(node) == ["ready"]
        row = await stands(node.db)
        assert row["state"] == "ready"
        waits.append(max(int(row["due_in"]), 0) / SECOND)
        await node.later(max(int(row["due_in"]), 0) + SECOND)
    return waits


async def test_ten_rescues_in_a_row_span_three_days_and_then_end_it(db: Database) -> None:
    await waiting(db, 1)
    node = Node(db)
    waits = await deaths(node, MOST_RESCUES - 1)
    assert waits[:RESCUES_AT_ONCE] == [0.0, 0.0]
    assert waits[RESCUES_AT_ONCE:] == pytest.approx(DEFAULT_WAITS[RESCUES_AT_ONCE:], abs=5)
    assert sum(waits) > 3 * DAYS
    row = await stands(db)
    assert (row["reason"], row["tries"], row["rescues"]) == (
        "the process ended while sending, 9 times in a row", 0, 9,
    )  # fmt: skip
    [_] = await node.claim()
    assert await die(node) == ["dead"]
    row = await stands(db)
    assert (row["state"], row["claim"], row["tries"]) == ("dead", None, 0)
    assert row["reason"] == "the process ended while sending, 10 times in a row"
    assert row["finished_at"]
    assert row["lane_in"] is None
    print(json.dumps({"rescues": MOST_RESCUES, "waits_s": [round(wait) for wait in waits]}))


async def test_a_rescued_delivery_waits_by_its_webhooks_schedule(db: Database) -> None:
    await add_webhook(db, ring(), URL, schedule=(1.0, 2.0, 40.0))
    await db.write(make, "r")
    await fanned(db)
    waits = await deaths(Node(db), 4)
    # Past the end of its own schedule the default one applies.
    assert waits == pytest.approx([0.0, 0.0, 40.0, DEFAULT_WAITS[3]], abs=5)


async def test_a_damaged_schedule_and_a_damaged_count_fail_no_rescue(db: Database) -> None:
    webhook_id = await waiting(db, 1)
    await db.write(run, "update webhooks set schedule = '[\"no' where id = $1", webhook_id)
    if db.engine == "sqlite":
        await db.write(run, "update deliveries set rescues = 'many'")
    assert len(await deaths(Node(db), 3)) == 3


async def test_an_unsent_delivery_keeps_its_count(db: Database) -> None:
    """What a process releases unsent tells nothing about the next process that sends it."""
    await waiting(db, 1)
    node = Node(db)
    await deaths(node, 3)
    [delivery] = await node.claim()
    await db.write(settle, [unsent(delivery)])
    assert (await stands(db))["rescues"] == 3


async def test_what_waits_because_of_a_lost_lease_is_due_when_its_process_is_back(
    db: Database,
) -> None:
    await waiting(db, 1)
    node = Node(db)
    await deaths(node, RESCUES_AT_ONCE)
    [frozen] = await node.claim()
    await die(node)
    row = await stands(db)
    assert row["lane_in"] > 1_000 * SECOND
    await node.settle([frozen], "aborted")
    row = await stands(db)
    assert (row["rescues"], row["due_in"] <= 0, row["lane_in"] <= 0) == (2, True, True)


async def test_a_result_that_cannot_be_stored_counts(db: Database) -> None:
    """Or its receiver would get the delivery every minute, for ever."""
    await waiting(db, 2)
    node = Node(db)
    for number in range(1, MOST_RESCUES + 1):
        claimed = {one.id for one in await node.claim()}
        if number == 1:
            unstored = min(claimed)
        await db.write(rescue, node.name, WAITS, unstored={unstored})
        await node.later(2 * DAYS * SECOND)
    bad, good = await db.read(rows, "select * from deliveries order by id <> $1", unstored)
    assert bad["state"] == "dead"
    assert bad["reason"] == "the result could not be stored, 10 times in a row"
    assert (good["state"], good["rescues"]) == ("ready", 0)


@POSTGRES
async def test_a_node_whose_lease_has_ended_counts_until_it_reports(db: Database) -> None:
    await waiting(db, 1)
    node = Node(db)
    await db.write(live_nodes.join, node.name)
    [frozen] = await node.claim()
    await db.write(run, "update nodes set alive_until = due_now() - 1")
    assert len(await db.write(live_nodes.rescue_lost, WAITS)) == 1
    assert (await stands(db))["rescues"] == 1
    await node.settle([frozen], "success")
    assert (await stands(db))["rescues"] == 0
