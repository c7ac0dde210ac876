"""Attacks on sign-in without an account, beside sign-ins with the right password.

A trusted proxy on loopback reports the addresses.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import aiohttp
import argon2

from gateway.domain.accounts import api_keys, tokens, users
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.system.attacks.attack import Attack, Target

TRIES = 200
APART_SECONDS = 0.002
"""The attacker shares the machine and its loop with the measured sign-ins."""
CREDENTIALS = 1_000
AT_ONCE = 20
HONEST = 6
HONEST_SECONDS = 20.0
"""All sign-ins before have a turn first; that takes a few seconds on a quiet machine."""
PAUSE_SECONDS = 0.1
VICTIM = "owner0@example.com"
PASSWORD = "a few random words"


async def passwords(target: Target) -> None:
    """The accounts for the attack and for the sign-ins."""
    hashed = argon2.PasswordHasher(time_cost=2, memory_cost=19456, parallelism=1).hash(PASSWORD)
    db = await database.open(target.url, clock=SystemClock(), ids=Ids())
    try:
        await db.write(users.set_password, target.owners[0], hashed)
        for number in range(HONEST):
            await db.write(users.add, email=_honest(number), name="Maria", password_hash=hashed)
    finally:
        await db.close()


async def one_account(target: Target) -> int:
    """Try passwords for one account, from many networks at once."""
    return await _tries(target, lambda n: (VICTIM, f"203.{n // 250}.{n % 250}.1"))


async def many_accounts(target: Target) -> int:
    """Try a password for each of many accounts, from one /48."""
    return await _tries(target, lambda n: (f"{n}@example.com", f"2001:db8:7:{n:x}::1"))


async def many_networks(target: Target) -> int:
    """Try a password for each of many accounts, each from its own network."""
    return await _tries(target, lambda n: (f"{n}@example.com", f"2001:db8:{n:x}::1"))


async def one_address(target: Target) -> int:
    """Try passwords for many accounts from one address."""
    return await _tries(target, lambda n: (f"{n}@example.com", "203.0.113.9"))


async def random_tokens(target: Target) -> int:
    """Try bearer tokens that do not exist."""
    ids = Ids()
    return await _credentials(target, lambda: {"Authorization": f"Bearer {tokens.make(ids)}"})


async def random_keys(target: Target) -> int:
    """Try API keys that do not exist, with a valid checksum."""
    ids = Ids()
    return await _credentials(target, lambda: {"X-API-Key": api_keys.make(ids)})


async def _tries(target: Target, who: Callable[[int], tuple[str, str]]) -> int:
    async def ask(http: aiohttp.ClientSession) -> int:
        tries = []
        for n in range(TRIES):
            tries.append(asyncio.create_task(_token(http, *who(n), "wrong horse")))
            await asyncio.sleep(APART_SECONDS)
        await asyncio.gather(*tries)
        return TRIES

    return await _beside(target, ask)


async def _credentials(target: Target, headers: Callable[[], dict[str, str]]) -> int:
    async def one(http: aiohttp.ClientSession) -> None:
        async with http.get("/api/contacts", headers=headers()) as answer:
            await answer.read()
            if answer.status != 401:
                target.findings.append(f"a random credential got {answer.status}")

    async def ask(http: aiohttp.ClientSession) -> int:
        async def several() -> None:
            for _ in range(CREDENTIALS // AT_ONCE):
                await one(http)

        await asyncio.gather(*(several() for _ in range(AT_ONCE)))
        return CREDENTIALS

    return await _beside(target, ask)


async def _beside(target: Target, attack: Callable[[aiohttp.ClientSession], Awaitable[int]]) -> int:
    """Run an attack while others sign in with the right password."""
    timeout = aiohttp.ClientTimeout(total=90)
    connector = aiohttp.TCPConnector(limit=400)
    async with aiohttp.ClientSession(
        target.address, timeout=timeout, connector=connector
    ) as http, aiohttp.ClientSession(target.address, timeout=timeout) as honest:  # fmt: skip
        attacking = asyncio.ensure_future(attack(http))
        await asyncio.gather(*(_sign_in(target, honest, number) for number in range(HONEST)))
        return await attacking + HONEST


async def _sign_in(target: Target, http: aiohttp.ClientSession, number: int) -> None:
    """Sign in with the right password, some time into the attack."""
    await asyncio.sleep((number + 1) * PAUSE_SECONDS)
    began = time.monotonic()
    status = await _token(http, _honest(number), f"198.51.{number}.1", PASSWORD)
    took = time.monotonic() - began
    if status != 200 or took > HONEST_SECONDS:
        target.findings.append(f"an honest sign-in got {status} after {took:.1f} s")


def _honest(number: int) -> str:
    return f"honest{number}@example.com"


async def _token(http: aiohttp.ClientSession, email: str, address: str, password: str) -> int:
    body, behind = {"email": email, "password": password}, {"X-Forwarded-For": address}
    async with http.post("/api/auth/token", json=body, headers=behind) as answer:
        await answer.read()
        return answer.status


RUNS = (one_account, many_accounts, many_networks, one_address, random_tokens, random_keys)
ATTACKS = tuple(Attack(run.__name__.replace("_", " "), run, passwords) for run in RUNS)
