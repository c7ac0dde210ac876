"""The reported outcome of a COMMIT is true while it runs (A1)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import asyncpg

from outbox.database.postgres.commit_outcome import CommitOutcomes, mark, marking
from outbox.database.postgres.server import Server
from outbox.database.sql import insert_text
from outbox.errors import OutcomeUnknown
from outbox.events import INSERT
from tests.support.databases import ORDINARY
from tests.support.faults import sizes
from tests.system.staging import address

ASKERS = 8
ROLLED_BACK = 10
"""One trial in this many rolls back."""
WITHOUT_EVENT = 4
"""One trial in this many queries without an event, as a settle does."""
PATIENCE_SECONDS = 10.0
ONE_IN_TIME = 20
"""One COMMIT in this many comes before the query, to measure how long a query takes."""
AIM = 0.5
"""The others come at a random moment of its first half, during the status look-up."""
ONE_EVENT = insert_text(INSERT.table, INSERT.columns, 1, "")
INSERTED = ("0" * 24, "x.y", "r", 1, None, 0, None, None, b"{}", "d")


async def run_commit_race(trials: int, seed: int) -> dict[str, Any]:
    """Run `trials` transactions that end during a query; return the wrong results."""
    counts: Counter[str] = Counter()
    async with address("postgres", ORDINARY) as url, asyncio.TaskGroup() as group:
        for asker in range(ASKERS):
            numbers = range(asker, trials, ASKERS)
            group.create_task(_race(url, numbers, random.Random(seed + asker), counts))
    told = {
        "seed": seed, "trials": counts["trials"], "raced": counts["raced"],
        "twice": counts["twice"], "missing": counts["missing"], "unknown": counts["unknown"],
    }  # fmt: skip
    findings = [f"{counts[what]} {what}" for what in ("twice", "missing", "unknown") if told[what]]
    if counts["raced"] < trials / 4:
        findings.append(f"only {counts['raced']} of {trials} ended while the question was open")
    return {"pass": not findings, **told, "findings": findings}


class _Kept:
    """A server that keeps one connection for all queries: a new one takes longer than a query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def connect(self) -> _Kept:
        return self

    async def close(self, timeout: float | None = None) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def _race(url: str, numbers: range, dice: random.Random, counts: Counter[str]) -> None:
    connection, asking = await asyncpg.connect(url), await asyncpg.connect(url)
    fates = CommitOutcomes(cast(Server, _Kept(asking)))
    lasts = 0.0
    try:
        for place, number in enumerate(numbers):
            wait = 0.0 if place % ONE_IN_TIME == 0 else dice.uniform(0, AIM) * lasts
            seconds = await _trial(connection, fates, number, dice, wait, counts)
            if not wait:
                lasts = (lasts + seconds) / 2 if lasts else seconds
    finally:
        await asking.close()
        await connection.close()


async def _trial(
    connection: Any,
    fates: CommitOutcomes,
    number: int,
    dice: random.Random,
    wait: float,
    counts: Counter[str],
) -> float:
    """Run one transaction that ends `wait` after its query; return the query's duration."""
    loop = asyncio.get_running_loop()
    event_id = f"{number:024x}"
    await connection.execute("begin")
    row = await connection.fetchrow(marking(ONE_EVENT), event_id, *INSERTED)
    marked = await mark(connection, row, (INSERT, event_id))
    if number % WITHOUT_EVENT == 0:
        marked = replace(marked, wrote=None)
    ends = "rollback" if dice.randrange(ROLLED_BACK) == 0 else "commit"
    if not wait:
        await connection.execute(ends)
    began = loop.time()
    asked = asyncio.create_task(fates.committed(marked, began + PATIENCE_SECONDS))
    if wait:
        await asyncio.sleep(wait)
        counts["raced"] += not asked.done()
        await connection.execute(ends)
    counts["trials"] += 1
    try:
        took_place = await asked
    except OutcomeUnknown:
        counts["unknown"] += 1
        return loop.time() - began
    # A write reported as not committed runs twice; one reported as committed is acknowledged.
    counts["twice"] += ends == "commit" and not took_place
    counts["missing"] += ends == "rollback" and took_place
    return loop.time() - began


@sizes("commits", large=20_000)
async def test_no_commit_is_judged_wrongly(commits: int) -> None:
    told = await run_commit_race(commits, seed=1)
    assert told["pass"], told
