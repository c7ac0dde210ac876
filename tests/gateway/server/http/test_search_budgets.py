"""Tests the places of visitors' searches; what they pay is tested at the storefront."""

import asyncio
import threading

import pytest

from gateway.records.errors import Refusal
from gateway.server.http.search_budgets import SearchBudgets
from outbox.database.transaction import Database, Tx

ATTACKER, HONEST = "203.0.113.66", "198.51.100.7"
# A unit may hold up a thread, which only SQLite's has.
on_threads = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


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
