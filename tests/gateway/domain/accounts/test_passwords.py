"""Tests the turns of hashing, and the refusal of common passwords."""

import asyncio

import pytest
from argon2 import Type

from gateway.domain.accounts import passwords
from gateway.domain.accounts.passwords import WAITING, Passwords
from gateway.records.errors import Refusal
from outbox.clock import SystemClock
from outbox.ids import Ids


class Watched:
    """An observer that records the cost of hashing."""

    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.hashed = 0

    def password_queue(self, waiting: int) -> None:
        self.waiting.append(waiting)

    def password_hashed(self, seconds: float) -> None:
        self.hashed += 1


@pytest.fixture
def watched() -> Watched:
    return Watched()


def hasher(watched: Watched) -> Passwords:
    return Passwords(clock=SystemClock(), ids=Ids(), observer=watched)


async def flood(hashing: Passwords, holders: int, each: int) -> list[asyncio.Task[bool]]:
    """Start `each` concurrent checks for each of `holders` clients."""
    tasks = [
        asyncio.create_task(hashing.verify(None, "wrong horse", f"holder {n}"))
        for _ in range(each)
        for n in range(holders)
    ]
    # A turn of the loop: all of them wait now.
    await asyncio.wait(tasks, timeout=0)
    return tasks


def refused(answers: list[bool | BaseException]) -> int:
    return sum(isinstance(answer, Refusal) and answer.code == "unavailable" for answer in answers)


async def test_a_flood_of_one_client_fills_only_its_own_queue(watched: Watched) -> None:
    hashing = hasher(watched)
    stored = await hashing.hash("a good password")
    tasks = await flood(hashing, 1, 100)
    right = [await hashing.verify(stored, "a good password", f"honest {n}") for n in range(6)]
    assert right == [True] * 6
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert refused(answers) == 100 - WAITING - 1
    assert (watched.waiting[-1], watched.hashed) == (0, 1 + 6 + WAITING + 1)
    hashing.close()


async def test_floods_of_many_clients_leave_places_for_others(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "WAITING_MOST", 24)
    hashing = hasher(watched)
    stored = await hashing.hash("a good password")
    tasks = await flood(hashing, 8, 10)
    honest = [hashing.verify(stored, "a good password", f"honest {n}") for n in range(6)]
    assert await asyncio.gather(*honest) == [True] * 6
    assert refused(await asyncio.gather(*tasks, return_exceptions=True)) >= 80 - 24 - 2
    hashing.close()


@pytest.mark.usefixtures("true_cost")
def test_a_hash_costs_what_owasp_asks_for() -> None:
    cost = passwords.HASHER
    assert (cost.type, cost.time_cost, cost.memory_cost, cost.parallelism) == (Type.ID, 2, 19456, 1)
