"""Token buckets in memory that several processes share."""

import os
from collections.abc import Iterator

import pytest

from gateway.domain.accounts.counter_store import AttemptLimit
from gateway.records.errors import Refusal
from gateway.server.config import Limits
from gateway.server.http.rate_limits import EXAMINING_SECONDS, RateLimits
from gateway.server.processes.shared_counters import WAYS, SharedCounters, shared_memory
from tests.gateway.server.http.test_rate_limits import Counted
from tests.support.clocks import Hand


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = shared_memory()
    yield descriptor
    os.close(descriptor)


def test_buckets_of_different_names_are_apart(memory: int) -> None:
    table = SharedCounters(memory)
    table.of("read").put("a", 1, 1)
    assert table.of("write").get("a") is None


def test_in_a_full_set_the_one_idle_longest_goes(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "gateway.server.processes.shared_counters._places",
        lambda name: (range(WAYS), int(name.split()[1])),
    )
    levels = SharedCounters(memory).of("read")
    for number in range(1, WAYS + 1):
        levels.put(str(number), 1.0, 100.0 + number)
    levels.put("1", 1.0, 200.0)
    levels.put("99", 2.0, 300.0)
    assert [levels.get(name) for name in ("99", "1", "2")] == [(2.0, 300.0), (1.0, 200.0), None]


def test_the_rates_of_all_processes_together_are_those_of_the_settings(memory: int) -> None:
    settings = Limits(write_per_second=3, burst=1, sign_in_per_minute=2, forms_per_minute=2)
    there = [
        RateLimits(settings, Hand(), Counted(), SharedCounters(memory).of, processes=3)
        for _ in range(3)
    ]
    for process in there:
        process.call("write", "ana")
        assert process.call("read", "ana") is not None
    for process in there:
        with pytest.raises(Refusal):
            process.call("write", "ana")
    for process in there[:2]:
        process.sign_in("198.51.100.7")
        process.count("form", "198.51.100.7")
    with pytest.raises(Refusal):
        there[2].sign_in("198.51.100.7")
    with pytest.raises(Refusal):
        there[2].count("form", "198.51.100.7")


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
