"""Conditions cost the fan-out of other webhooks no statement."""

from __future__ import annotations

import time
from statistics import median
from typing import Any, cast

import pytest

from outbox.database.transaction import Database, Tx
from outbox.events import enqueue
from outbox.queue.drain import budget
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.deliveries import Capacity
from outbox.webhooks.conditions import Condition
from tests.support.counted import Counted
from tests.support.drain import add_webhook, ring
from tests.support.engines import Engine
from tests.system.staging import opened

WEBHOOKS = 10
EVENTS = 400
ROUNDS = 7
LARGE = "x" * 10_000
"""With it, a body is larger than what fan-out loads with its event."""
NONE = Capacity("node", "claim-0", 0, 0, 0, {}, 0)
ASKED = (Condition("status", "won"), Condition("id"))


async def run_filter_costs(engine: Engine, rounds: int = ROUNDS) -> dict[str, Any]:
    """Fan out the same events to webhooks without conditions, with some that pass and that fail.

    The CPU time is this process's, so on PostgreSQL the server's is not in it.
    """
    costs: dict[str, list[float]] = {}
    statements: dict[str, int] = {}
    findings: list[str] = []
    async with opened(engine) as db:
        key = ring()
        owners = {"none": "0" * 24, "passing": "1" * 24, "failing": "2" * 24, "large": "3" * 24}
        for name, owner in owners.items():
            for _ in range(WEBHOOKS):
                asked = () if name == "none" else ASKED
                await add_webhook(db, key, "http://127.0.0.1:9/", owner=owner, conditions=asked)
        for _ in range(rounds):
            for name, owner in owners.items():
                status = "lost" if name == "failing" else "won"
                count = EVENTS // 4 if name == "large" else EVENTS
                await db.write(_write, owner, count, status, LARGE if name == "large" else "")
                counted = Counted(db)
                began = time.process_time()
                made = 0
                more = True
                while more:
                    done = await cast(Database, counted).write(fan_out, NONE)
                    made += sum(done.created.values())
                    more = done.more
                spent = (time.process_time() - began) / count
                costs.setdefault(name, []).append(spent * 1_000_000)
                statements[name] = sum(len(texts) for _, texts in counted.written)
                wanted = 0 if name == "failing" else count * WEBHOOKS
                if made != wanted:
                    findings.append(f"{name}: {made} deliveries instead of {wanted}")
    figures = {f"{name}_us_per_event": round(median(spent), 1) for name, spent in costs.items()}
    return {
        "pass": not findings, "webhooks": WEBHOOKS, **figures, "statements": statements,
        "findings": findings,
    }  # fmt: skip


async def _write(tx: Tx, owner: str, count: int, status: str, text: str) -> None:
    for number in range(count):
        enqueue(
            tx, owner_id=owner, name="thing.made", record_id=f"r{number}", record_version=1,
            data={"id": number, "status": status, "text": text},
        )  # fmt: skip


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_small_events_are_judged_without_a_statement(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What conditions cost counts in the budget of a round: here it shall not change their number.
    monkeypatch.setitem(budget.ROUND, engine, 1_000_000_000)
    told = await run_filter_costs(engine, rounds=1)
    assert told["pass"], told
    statements = told["statements"]
    assert statements["none"] == statements["passing"]
    # A quarter as many events.
    assert 4 * statements["large"] > statements["passing"]
