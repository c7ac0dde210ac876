"""How often something may be tried: per holder and network, for a period."""

import pytest

from gateway.domain.storefront.visitors.attempt_limits import AttemptLimit
from gateway.records.errors import Refusal
from tests.gateway.domain.accounts.test_sign_in_delays import Hand

MESSAGE = "Too many."


def wait_of(tries: AttemptLimit, address: str, *holder: str) -> int:
    """Return the seconds to wait, 0 when the try is allowed."""
    try:
        tries.begin(address, *holder)
    except Refusal as refusal:
        return int(refusal.facts["retry_after"])
    return 0


def test_a_period_ends_after_its_first_try() -> None:
    clock = Hand()
    tries = AttemptLimit(clock, 3, 60.0, MESSAGE)
    for _ in range(3):
        assert wait_of(tries, "198.51.100.1", "ana") == 0
        clock.now += 10
    assert wait_of(tries, "198.51.100.1", "ana") == 30
    # Refused tries do not prolong it.
    clock.now += 30
    assert wait_of(tries, "198.51.100.1", "ana") == 0


def test_holders_and_networks_have_counts_of_their_own() -> None:
    tries = AttemptLimit(Hand(), 1, 60.0, MESSAGE)
    for address, holder in (
        ("198.51.100.1", "ana"), ("198.51.100.2", "ana"), ("198.51.100.1", "bia"),
        ("2001:db8::1", "ana"), ("2001:db8:0:1::1", "ana"),
    ):  # fmt: skip
        assert wait_of(tries, address, holder) == 0
    assert wait_of(tries, "198.51.100.1", "ana") == 60
    # The addresses of one subscriber share a count, and a wide network has ten times as many.
    assert wait_of(tries, "2001:db8::2", "ana") == 60
    assert [wait_of(tries, f"203.0.113.{n}", "ana") for n in range(12)] == [0] * 10 + [60] * 2


def test_right_and_unchecked_tries_do_not_count() -> None:
    tries = AttemptLimit(Hand(), 2, 60.0, MESSAGE)
    for _ in range(5):
        tries.begin("198.51.100.1", "ana")
        tries.undo("198.51.100.1", "ana")
    tries.begin("198.51.100.1", "ana")
    tries.forgive("198.51.100.1", "ana")
    for _ in range(2):
        tries.begin("198.51.100.1", "ana")
    with pytest.raises(Refusal):
        tries.begin("198.51.100.1", "ana")
