"""Places: who gets the next one, who waits, and who is refused."""

import asyncio
from collections.abc import Callable

import pytest

from outbox.database.fair_limit import Crowded, FairSemaphore


class Crowd:
    """Holders with a place, and all that got one, in order."""

    def __init__(self, places: FairSemaphore) -> None:
        self.places = places
        self.given: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}

    async def come(self, name: str) -> asyncio.Task[None]:
        """Request a place; the holder is the first letter of the name."""
        self._ends[name] = asyncio.Event()

        async def hold() -> None:
            async with self.places.place(name[0]):
                self.given.append(name)
                await self._ends[name].wait()

        task = asyncio.create_task(hold())
        await settle()
        return task

    async def go(self, name: str) -> None:
        self._ends[name].set()
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def crowd() -> Callable[..., Crowd]:
    def make(count: int, each: int = 2, waiting: int = 3, most: int = 8) -> Crowd:
        return Crowd(FairSemaphore(count, each=each, waiting=waiting, most=most))

    return make


async def test_holders_take_turns(crowd: Callable[..., Crowd]) -> None:
    here = crowd(1, each=1)
    for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
        await here.come(name)
    for name in ("a1", "a2", "b1", "c1", "a3", "b2", "a4"):
        assert here.given[-1] == name
        await here.go(name)
    assert here.places.waiting == 0


async def test_a_full_queue_refuses_only_its_holder(crowd: Callable[..., Crowd]) -> None:
    here = crowd(1, each=1)
    for name in ("a1", "a2", "a3", "a4"):
        await here.come(name)
    with pytest.raises(Crowded):
        await (await here.come("a5"))
    await here.come("b1")
    assert here.places.waiting == 4


async def test_at_the_total_limit_the_longest_queue_loses_a_waiter(
    crowd: Callable[..., Crowd],
) -> None:
    here = crowd(1, each=1, most=4)
    await here.come("x1")
    last = [await here.come(name) for name in ("a1", "a2", "a3", "b1")][2]
    await here.come("c1")
    with pytest.raises(Crowded):
        await last
    await here.come("d1")
    with pytest.raises(Crowded):
        await (await here.come("a4"))
    for name in ("x1", "a1", "b1", "c1", "d1"):
        assert here.given[-1] == name
        await here.go(name)
