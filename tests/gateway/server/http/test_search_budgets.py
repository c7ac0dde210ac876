"""Tests the places of visitors' searches; what they pay is tested at the storefront."""

import asyncio
import threading

import pytest

from gateway.records.errors import Refusal
from gateway.server.http.search_budgets import WAITING, SearchBudgets
from outbox.database.transaction import Database, Tx

ATTACKER, HONEST = "203.0.113.66", "198.51.100.7"
# A unit may hold up a thread, which only SQLite's has.
on_threads = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


@on_threads
async def test_an_address_waits_for_itself_alone(db: Database) -> None:
    budgets = SearchBudgets(db, 0)
    began, goes_on = threading.Event(), threading.Event()
    ended: list[str] = []

    async def slow(tx: Tx) -> tuple[str, int]:
        began.set()
        goes_on.wait(120)
        return "slow", 1

    async def quick(tx: Tx) -> tuple[str, int]:
        return "quick", 1

    async def attack(n: int) -> None:
        try:
            await budgets.run(ATTACKER, quick if n else slow)
            ended.append("attacker")
        except Refusal as refusal:
            ended.append(refusal.code)

    async def visit() -> None:
        await budgets.run(HONEST, quick)
        ended.append("honest")

    first = asyncio.create_task(attack(0))
    try:
        assert await asyncio.to_thread(began.wait, 120)
        attacks = [asyncio.create_task(attack(n)) for n in range(1, WAITING + 8)]
        visits = [asyncio.create_task(visit()) for _ in range(3)]
        # The owner's searches have another place.
        assert await db.scan("owner", quick) == ("quick", 1)
    finally:
        goes_on.set()
    await asyncio.gather(first, *attacks, *visits)
    assert ended[:7] == ["rate_limited"] * 7
    assert ended.count("attacker") == WAITING + 1
    # In turns with the attacker's, not behind them.
    assert ended[7:14].count("honest") == 3


@on_threads
async def test_an_abandoned_search_pays_too(db: Database) -> None:
    budgets = SearchBudgets(db, 1)
    began, goes_on = threading.Event(), threading.Event()

    async def slow(tx: Tx) -> tuple[str, int]:
        began.set()
        goes_on.wait(120)
        return "slow", 1

    search = asyncio.create_task(budgets.run(ATTACKER, slow))
    try:
        assert await asyncio.to_thread(began.wait, 120)
        search.cancel()
    finally:
        goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await search
    with pytest.raises(Refusal) as refused:
        await budgets.run(ATTACKER, slow)
    assert refused.value.code == "rate_limited"
    assert await budgets.run(HONEST, slow) == "slow"
