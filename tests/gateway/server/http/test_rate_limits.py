"""Token buckets, and what a client is told of them."""

import pytest

from gateway.domain.accounts.counter_store import OwnCounters
from gateway.records.errors import Refusal
from gateway.server.config import Limits
from gateway.server.http.rate_limits import (
    REFUSED_AT_ONCE,
    REST_SECONDS,
    Buckets,
    RateLimits,
)
from tests.support.clocks import Hand


class Counted:
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def authenticated(self, scheme: str, outcome: str) -> None:
        self.seen.append((scheme, outcome))


def test_buckets_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.domain.accounts.counter_store.HOLDERS", 3)
    levels = OwnCounters()
    bucket = Buckets(rate=1, depth=2, clock=Hand(), levels=levels)
    bucket.take("busy")
    bucket.take("busy")
    for name in "abc":
        bucket.take(name)
    assert len(levels._levels) == 3
    assert bucket.take("busy")[0] == 1


def test_a_bucket_holds_a_burst_fills_at_its_rate_and_refuses_for_nothing() -> None:
    clock = Hand()
    bucket = Buckets(rate=2, depth=4, clock=clock)
    assert [bucket.take("a")[0] for _ in range(6)] == [3, 2, 1, 0, -1, -1]
    assert bucket.take("b")[0] == 3
    assert bucket.take("a")[1] == pytest.approx(0.5)
    clock.now += 0.5
    assert bucket.take("a")[0] == pytest.approx(0)
    clock.now += 1000
    assert bucket.take("a")[0] == 3
    # A request that costs more than a burst needs a whole one: the first token when it comes, the
    # others when its cost is known.
    assert bucket.take("a", 99)[0] == 0
    clock.now += 1.5
    assert bucket.take("a")[0] == 2
    assert bucket.take("a", 99) == (-1, 0.5)


def test_what_a_caller_is_told_of_the_limits() -> None:
    limits = RateLimits(Limits(), Hand(), Counted())
    assert limits.call("read", "k") == '"read";r=99;t=1'
    assert limits.call("write", "k") == '"write";r=49;t=1'
    assert limits.policies == {
        "read": '"read";q=100;w=1',
        "write": '"write";q=50;w=1',
        "storefront": '"storefront";q=300;w=60',
    }
    clock = Hand()
    limits = RateLimits(Limits(read_per_second=1, burst=4), clock, Counted())
    for _ in range(4):
        limits.call("read", "k")
    with pytest.raises(Refusal) as refused:
        limits.call("read", "k")
    assert refused.value.code == "rate_limited"
    assert refused.value.facts["retry_after"] == 1
    assert refused.value.facts["rate_limit"] == '"read";r=0;t=1'
    assert limits.call("read", "another")
    assert limits.call("write", "k")
    clock.now += 1
    assert limits.call("read", "k") == '"read";r=0;t=1'


def test_what_a_read_turned_out_to_be_is_paid_for_by_those_that_follow() -> None:
    clock = Hand()
    bucket = Buckets(rate=2, depth=4, clock=clock)
    bucket.owe("a", 0)
    assert bucket.take("a")[0] == 3
    bucket.owe("a", 5)
    assert bucket.take("a") == (-1, 1.5)
    # However much that was, the account waits for two bursts at most.
    bucket.owe("a", 1_000)
    assert bucket.take("a") == (-1, 2.5)
    clock.now += 2.5
    assert bucket.take("a")[0] == 0


def test_refusals_of_an_account_wait_beyond_a_rate() -> None:
    clock = Hand()
    limits = RateLimits(Limits(), clock, Counted())
    waits = [limits.refused("greedy") for _ in range(REFUSED_AT_ONCE + 1)]
    assert waits == [0.0] * REFUSED_AT_ONCE + [REST_SECONDS]
    assert limits.refused("honest") == 0
    clock.now += 0.1
    assert [limits.refused("greedy") for _ in range(2)] == [0.0, REST_SECONDS]
