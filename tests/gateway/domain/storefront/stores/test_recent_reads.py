"""Reads that many wait for: of what fails, is cancelled or is forgotten meanwhile nothing stays."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.storefront.stores.store_directory import RecentReads
from outbox.clock import SystemClock
from outbox.database.transaction import RequestBudget, asker, patience


class Source:
    """What is read: each read takes its number at once, and ends when `open` is set."""

    def __init__(self) -> None:
        self.reads = 0
        self.open = asyncio.Event()
        self.error: Exception | None = None

    async def read(self) -> int:
        self.reads += 1
        number = self.reads
        await self.open.wait()
        if self.error is not None:
            raise self.error
        return number


async def begun(kept: RecentReads[int], source: Source, count: int) -> list[asyncio.Task[int]]:
    """Let `count` ask for the key `a`, and return while they wait."""
    before = source.reads
    asking = [asyncio.create_task(kept.get("a", source.read)) for _ in range(count)]
    while source.reads == before:
        await asyncio.sleep(0)
    return asking


async def test_who_is_cancelled_leaves_the_read_to_the_others() -> None:
    kept, source = RecentReads[int](SystemClock(), 600, 10), Source()
    first, *others = await begun(kept, source, 3)
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    source.open.set()
    assert await asyncio.gather(*others, kept.get("a", source.read)) == [1, 1, 1]


async def test_a_read_belongs_to_none_of_those_who_wait_for_it() -> None:
    kept = RecentReads[str](SystemClock(), 600, 10)

    async def read() -> str:
        return asker()

    budget = RequestBudget(waited=9.0, owner="ana")
    patience.set(budget)
    assert await kept.get("shop.example", read) == "shop.example"
    assert patience.get() is budget


async def test_a_read_that_failed_reaches_all_and_is_not_kept() -> None:
    kept, source = RecentReads[int](SystemClock(), 600, 10), Source()
    asking = await begun(kept, source, 2)
    source.error = ValueError("unreadable")
    source.open.set()
    assert await asyncio.gather(*asking, return_exceptions=True) == [source.error] * 2
    kept.forget_those(lambda number: True)
    assert (kept.has("a"), kept.last("a")) == (False, None)
    source.error = None
    assert await kept.get("a", source.read) == 2


@pytest.mark.parametrize("way", ["by its key", "by what it may be"])
async def test_what_was_read_before_a_change_is_not_kept(way: str) -> None:
    kept, source = RecentReads[int](SystemClock(), 600, 10), Source()
    before = await begun(kept, source, 1)
    if way == "by its key":
        kept.forget("a")
    else:
        kept.forget_those(lambda number: False)
    after = await begun(kept, source, 2)
    source.open.set()
    assert await asyncio.gather(*before, *after) == [1, 2, 2]
    assert await kept.get("a", source.read) == 2
    kept.forget_those(lambda number: number == 1)
    assert kept.has("a")
    kept.forget_those(lambda number: number == 2)
    assert not kept.has("a")


async def test_it_keeps_the_last_ones() -> None:
    kept, source = RecentReads[int](SystemClock(), 600, 2), Source()
    source.open.set()
    for key in ("a", "b", "c"):
        await kept.get(key, source.read)
    assert [kept.has(key) for key in ("a", "b", "c")] == [False, True, True]
    old = RecentReads[int](SystemClock(), 0, 2)
    assert [await old.get("a", source.read) for _ in range(2)] == [4, 5]
    assert (old.has("a"), old.last("a")) == (False, 5)
