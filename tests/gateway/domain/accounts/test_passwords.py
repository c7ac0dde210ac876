"""Tests the turns of hashing, and the refusal of common passwords."""

import asyncio

import pytest
from argon2 import Type

from gateway.domain.accounts import passwords
from gateway.domain.accounts.passwords import COMMON_PASSWORDS, WAITING, Passwords, fault_of
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


def test_rules_of_new_passwords() -> None:
    for password, says in (
        ("short", "8 to 128"), ("x" * 129, "8 to 128"), ("password", "too common"),
        ("  PassWord1 ", "too common"), ("QwertyUiop", "too common"),
        ("zzzzzzzzzzzz", "too common"), ("maria.silva@example.com", "e-mail"),
        ("Maria.Silva", "e-mail"), ("pass\u200bword1", "U+200B ZERO WIDTH SPACE"),
        ("a\tgood password", "U+0009"), ("sum\u00e1rio \u2764\ufe0f", "U+FE0F"),
    ):  # fmt: skip
        assert says in str(fault_of(password, "Maria.Silva@example.com"))
    for password in ("correct horse battery", "maria.silva plants trees"):
        assert fault_of(password, "Maria.Silva@example.com") is None


async def test_a_password_is_known_by_all_its_spellings(watched: Watched) -> None:
    hashing = hasher(watched)
    stored = await hashing.hash("caf\u00e9 com p\u00e3o")
    for typed in ("cafe\u0301 com p\u00e3o", "caf\u00e9\u3000com\u00a0pa\u0303o"):
        assert await hashing.check(stored, typed) == (True, None)
    # Neither case nor width are the same password.
    assert not await hashing.verify(stored, "CAF\u00c9 com p\u00e3o")
    assert not await hashing.verify(stored, "caf\u00e9 \uff43om p\u00e3o")
    hashing.close()


async def test_a_hash_of_an_earlier_release_is_replaced(watched: Watched) -> None:
    hashing = hasher(watched)
    typed, bare = "cafe\u0301 com pa\u0303o", "with \u200b nothing"
    right, better = await hashing.check(passwords.HASHER.hash(typed), typed)
    assert right
    assert await hashing.check(better, "caf\u00e9 com p\u00e3o") == (True, None)
    # What no new password has still signs in.
    assert await hashing.check(passwords.HASHER.hash(bare), bare) == (True, None)
    assert await hashing.check(passwords.HASHER.hash(typed), "cafe com pao") == (False, None)
    hashing.close()


def test_every_password_of_the_list_is_refused() -> None:
    common = COMMON_PASSWORDS.read_text("utf-8").splitlines()
    assert len(common) == len(set(common)) == 10_000
    assert [one for one in common if fault_of(one, "maria@example.com") is None] == []
