"""Token buckets in memory that several processes share."""

import os
from collections.abc import Iterator

import pytest

from gateway.domain.storefront.visitors.attempt_limits import AttemptLimit
from gateway.records.errors import Refusal
from gateway.server.config import Limits
from gateway.server.http.rate_limits import EXAMINING_SECONDS, RateLimits
from gateway.server.processes.shared_counters import SharedCounters, shared_memory
from tests.gateway.server.http.test_rate_limits import Counted, Hand


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = shared_memory()
    yield descriptor
    os.close(descriptor)


def test_buckets_of_different_names_are_apart(memory: int) -> None:
    table = SharedCounters(memory)
    table.of("read").put("a", 1, 1)
    assert table.of("write").get("a") is None


def test_an_account_examines_in_one_process_at_a_time(memory: int) -> None:
    clock = Hand()
    one, two = (
        RateLimits(Limits(), clock, Counted(), SharedCounters(memory).of, processes=2)
        for _ in range(2)
    )
    with one.examination("ana"):
        with pytest.raises(Refusal), two.examination("ana"):
            pass
        with two.examination("bia"):
            pass
    clock.now += 5
    with two.examination("ana"):
        pass
    # A process that dies during an examination does not end them for the account.
    one.examination("ana").__enter__()
    clock.now += EXAMINING_SECONDS
    with two.examination("ana"):
        pass


def test_tries_of_customers_count_in_all_processes(memory: int) -> None:
    clock = Hand()
    one, two = (AttemptLimit(clock, 2, 60.0, "Later.", SharedCounters(memory).of) for _ in range(2))
    one.begin("198.51.100.7", "a")
    two.begin("198.51.100.7", "a")
    with pytest.raises(Refusal):
        one.begin("198.51.100.7", "a")
    two.forgive("198.51.100.7", "a")
    one.begin("198.51.100.7", "a")
