"""Token buckets, and what a client is told of them."""

import pytest

from gateway.domain.accounts.counter_store import OwnCounters
from gateway.server.http.rate_limits import Buckets


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> int:
        return int(self.now * 1_000_000)

    boot = wall


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
