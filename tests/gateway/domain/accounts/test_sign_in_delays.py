"""Tests the delays of an account after wrong passwords, and their reset."""

import pytest

from gateway.domain.accounts import counter_store
from gateway.domain.accounts.sign_in import DELAYS, SignInDelays
from gateway.domain.accounts.users import LONGEST_EMAIL
from gateway.records.errors import Refusal
from tests.support.clocks import Hand

MARIA, HOME, FAR = "maria@example.com", "192.0.2.1", "198.51.100.7"
FREE = DELAYS.count(0.0)


@pytest.fixture
def clock() -> Hand:
    return Hand()


def waits(tries: SignInDelays, email: str = MARIA, share: str = FAR) -> int:
    """Return the delay of an attempt in seconds; 0 when it was allowed and so counted."""
    try:
        tries.begin(email, share)
    except Refusal as slow:
        return int(slow.facts["retry_after"])
    return 0


def test_attempts_count_before_their_check_and_refused_ones_never(clock: Hand) -> None:
    tries = SignInDelays(clock)
    assert [waits(tries) for _ in range(100)] == [0] * FREE + [1] * (100 - FREE)


def test_attempts_from_elsewhere_do_not_delay_a_known_network(clock: Hand) -> None:
    tries = SignInDelays(clock)
    assert waits(tries, share=HOME) == 0
    tries.right(MARIA, HOME)
    while not waits(tries, share=FAR):
        pass
    assert waits(tries, share=HOME) == 0
    assert [waits(tries, share=HOME) for _ in range(FREE)] == [0] * (FREE - 1) + [1]


def test_an_attempt_without_a_check_does_not_count(clock: Hand) -> None:
    tries = SignInDelays(clock)
    for _ in range(3 * FREE):
        assert waits(tries) == 0
        tries.unjudged(MARIA, FAR)


def test_memory_is_limited(clock: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counter_store, "HOLDERS", 3)
    kept: dict[str, counter_store.OwnCounters] = {}
    tries = SignInDelays(clock, lambda name: kept.setdefault(name, counter_store.OwnCounters()))
    for n in range(10):
        waits(tries, f"{n}@example.com")
        tries.right("x@example.com", f"192.0.2.{n}")
    for email in ("e\u0301" * LONGEST_EMAIL, "\ud800", ""):
        waits(tries, email)
    assert [len(store._levels) for store in kept.values()] == [3, 3]
    assert {len(key) for store in kept.values() for key in store._levels} == {32}
