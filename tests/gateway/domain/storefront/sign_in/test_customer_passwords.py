"""Sign-ins of customers: a flood keeps nobody else waiting, and no account is told apart."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway.domain.accounts.passwords import Passwords
from gateway.domain.storefront.sign_in.customer_passwords import CustomerPasswords
from gateway.records.errors import Refusal
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids

STORE = "0" * 24


class Watched:
    """An observer that counts the hashes."""

    hashed = 0

    def password_queue(self, waiting: int) -> None: ...
    def password_hashed(self, seconds: float) -> None:
        self.hashed += 1


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def hasher(watched: Watched) -> Iterator[Passwords]:
    passwords = Passwords(clock=SystemClock(), ids=Ids(), observer=watched)
    yield passwords
    passwords.close()


async def test_a_flood_of_customers_does_not_keep_the_console_waiting(
    db: Database, hasher: Passwords
) -> None:
    """However many wait, at most one customer's hash runs before the console's."""
    passwords = CustomerPasswords(db, hasher, 0)
    ended: list[str] = []
    first = asyncio.Event()

    async def customer(n: int) -> None:
        try:
            await passwords.check(STORE, f"c{n}@example.com", "wrong", f"198.51.100.{n % 20}")
        except Refusal as refusal:
            if refusal.code == "invalid_credentials":
                ended.append("customer")
                first.set()

    flood = [asyncio.create_task(customer(n)) for n in range(200)]
    await first.wait()
    before = len(ended)
    assert not await hasher.verify(None, "wrong", "203.0.113.9")
    assert len(ended) - before <= 3
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)


async def test_every_wrong_sign_in_hashes_once(
    db: Database, hasher: Passwords, watched: Watched
) -> None:
    """Unknown emails cost the same work as a wrong password."""
    passwords = CustomerPasswords(db, hasher, 0)
    for count, email in enumerate(("nobody@example.com", "x", "a" * 10_000), start=1):
        with pytest.raises(Refusal) as caught:
            await passwords.check(STORE, email, "wrong", "198.51.100.1")
        assert caught.value.code == "invalid_credentials"
        assert watched.hashed == count
