"""Token buckets in memory that several processes share."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gateway.domain.accounts.attempts import Attempts
from gateway.domain.storefront.visitors.attempt_limits import Tries
from gateway.records.errors import Refusal
from gateway.server.config import Limits
from gateway.server.http.rate_limits import EXAMINING_SECONDS, Buckets, RateLimits
from gateway.server.processes.shared_counters import WAYS, SharedCounters, shared_memory
from tests.gateway.server.http.test_rate_limits import Counted, Hand

OTHER = """
import sys
from gateway.server.processes.shared_counters import SharedCounters
levels = SharedCounters(int(sys.argv[1])).of("read")
print(levels.get("ana"))
levels.put("ana", 1.5, 200.0)
"""


@pytest.fixture
def memory() -> Iterator[int]:
    descriptor = shared_memory()
    yield descriptor
    os.close(descriptor)


def test_a_bucket_is_one_for_all_processes(memory: int) -> None:
    clock = Hand()
    one, two = (Buckets(1, 4, clock, SharedCounters(memory).of("read")) for _ in range(2))
    assert [bucket.take("a")[0] for bucket in (one, two, one, two, one)] == [3, 2, 1, 0, -1]
    clock.now += 1
    assert two.take("a")[0] == 0
    one.give_back("a")
    assert two.take("a")[0] == 0
    assert one.take("b")[0] == 3


def test_a_process_that_inherits_the_memory_sees_the_same(memory: int) -> None:
    levels = SharedCounters(memory).of("read")
    assert levels.get("ana") is None
    levels.put("ana", 3.25, 100.5)
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(memory)],
        pass_fds=(memory,), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "(3.25, 100.5)\n"
    assert levels.get("ana") == (1.5, 200.0)


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
    assert levels.get("2") == (1.0, 102.0)
    levels.put("1", 1.0, 200.0)
    levels.put("99", 2.0, 300.0)
    assert levels.get("99") == (2.0, 300.0)
    assert levels.get("1") == (1.0, 200.0)
    assert levels.get("2") is None


def test_the_rates_of_all_processes_together_are_those_of_the_settings(memory: int) -> None:
    clock = Hand()
    settings = Limits(write_per_second=3, burst=1, sign_in_per_minute=2, forms_per_minute=2)
    there = [
        RateLimits(settings, clock, Counted(), SharedCounters(memory).of, processes=3)
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
        process.form("198.51.100.7")
    with pytest.raises(Refusal):
        there[2].sign_in("198.51.100.7")
    with pytest.raises(Refusal):
        there[2].form("198.51.100.7")


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


def test_wrong_passwords_count_in_all_processes(memory: int) -> None:
    clock = Hand()
    one, two = (Attempts(clock, SharedCounters(memory).of) for _ in range(2))
    for attempts in (one, two, one, two, one):
        attempts.begin("ana@example.com", "198.51.100.7")
    with pytest.raises(Refusal):
        two.begin("ana@example.com", "198.51.100.9")
    clock.now += 1
    two.begin("ana@example.com", "198.51.100.7")
    two.right("ana@example.com", "198.51.100.7")
    # The network is known in both, and the count is gone.
    for _ in range(5):
        one.begin("ana@example.com", "198.51.100.7")
        one.begin("ana@example.com", "198.51.100.9")


def test_tries_of_customers_count_in_all_processes(memory: int) -> None:
    clock = Hand()
    one, two = (Tries(clock, 2, 60.0, "Later.", SharedCounters(memory).of) for _ in range(2))
    one.begin("198.51.100.7", "a")
    two.begin("198.51.100.7", "a")
    with pytest.raises(Refusal):
        one.begin("198.51.100.7", "a")
    two.forgive("198.51.100.7", "a")
    one.begin("198.51.100.7", "a")
