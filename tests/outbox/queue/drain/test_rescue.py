"""Rescues: which of them count, how long they make a delivery wait, and when they end it.

Processes end and stand still by hand; time passes by moving what the database waits for.
"""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.transaction import Database, Row, Tx
from outbox.queue.drain.rescue import Waits
from outbox.queue.state.policy import DEFAULT_WAITS, RESCUES_AT_ONCE
from outbox.worker import nodes
from tests.outbox.queue.state.test_circuits import SECOND, Node, fanned, waiting
from tests.support.drain import add_webhook, make, ring, rows
from tests.support.lines import URL, WAITS

STANDS = """
select d.*, d.next_at - due_now() as due_in, l.due_at - due_now() as lane_in
from deliveries d join lanes l on l.webhook_id = d.webhook_id order by d.id
"""
POSTGRES = pytest.mark.parametrize("db_url", ["postgres"], indirect=True)


async def execute(tx: Tx, sql: str, *args: Any) -> int:
    return await tx.run(sql, *args)


async def stands(db: Database) -> Row:
    """Return the only delivery, with the times until it and its lane are due."""
    [row] = await db.read(rows, STANDS)
    return row


async def die(node: Node, waits: Waits = WAITS) -> list[str]:
    """End the node's process with all that it has claimed; return the states of what it held."""
    return [one.state for one in await node.db.write(nodes.take_over, node.name, waits)]


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


async def test_a_rescued_delivery_waits_by_its_webhooks_schedule(db: Database) -> None:
    await add_webhook(db, ring(), URL, schedule=(1.0, 2.0, 40.0))
    await db.write(make, "r")
    await fanned(db)
    waits = await deaths(Node(db), 4)
    # Past the end of its own schedule the default one applies.
    assert waits == pytest.approx([0.0, 0.0, 40.0, DEFAULT_WAITS[3]], abs=5)


async def test_a_damaged_schedule_and_a_damaged_count_fail_no_rescue(db: Database) -> None:
    webhook_id = await waiting(db, 1)
    await db.write(execute, "update webhooks set schedule = '[\"no' where id = $1", webhook_id)
    if db.engine == "sqlite":
        await db.write(execute, "update deliveries set rescues = 'many'")
    assert len(await deaths(Node(db), 3)) == 3


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


@POSTGRES
async def test_a_node_whose_lease_has_ended_counts_until_it_reports(db: Database) -> None:
    await waiting(db, 1)
    node = Node(db)
    await db.write(nodes.join, node.name)
    [frozen] = await node.claim()
    await db.write(execute, "update nodes set alive_until = due_now() - 1")
    assert len(await db.write(nodes.rescue_lost, WAITS)) == 1
    assert (await stands(db))["rescues"] == 1
    await node.settle([frozen], "success")
    assert (await stands(db))["rescues"] == 0
