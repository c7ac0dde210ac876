"""Claim, fan-out and settle in one transaction: together they stay within one capacity."""

from __future__ import annotations

from typing import Any

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.drain import cycle
from tests.support.drain import drain, inbox, make, ring, rows


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_claim_that_fails_beside_results_loses_nothing_of_them(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = 0

    async def broken(tx: Tx, *args: Any) -> Any:
        nonlocal tried
        tried += 1
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(cycle, "claim", broken)
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        [attempt] = await db.read(rows, "select outcome, status, error from attempts")
        assert [attempt[n] for n in ("outcome", "status", "error")] == ["success", 200, None]
        assert tried
        assert not running.watch.counts.get("fenced")
