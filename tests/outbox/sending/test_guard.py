"""The egress guard: the look-up of names, and the check of each address that it returns."""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence

import pytest

from outbox.clock import SystemClock
from outbox.sending.addresses import Rules
from outbox.sending.egress_guard import Guard
from outbox.sending.lookups import (
    FAILED_SECONDS,
    FRESH_SECONDS,
    STALE_SECONDS,
    LookupFailed,
    ask_system,
)
from outbox.sending.urls import REFUSED_ADDRESS, Refused
from tests.support.waiting import HANG_SECONDS

STRICT = Rules()


class Clock(SystemClock):
    """A clock that only a test advances."""

    ahead = 0.0

    def monotonic(self) -> float:
        return 1_000.0 + self.ahead


class Names:
    """A name server for tests: configurable results, a count of queries, and hanging queries."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.answers: dict[str, Sequence[str]] = dict(answers)
        self.hosts: list[str] = []
        self.hold = threading.Event()
        self.hold.set()
        self.wait: Callable[[str], object] = lambda host: self.hold.wait(HANG_SECONDS)
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def __call__(self, host: str) -> Sequence[str]:
        with self._lock:
            self.hosts.append(host)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        self.wait(host)
        with self._lock:
            self.at_once -= 1
        if host not in self.answers:
            raise LookupFailed("no such host")
        return self.answers[host]


def guarded(names: Names, clock: Clock | None = None, rules: Rules = STRICT) -> Guard:
    return Guard(rules, clock or Clock(), names)


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_refused_answer_refuses_the_name(place: int) -> None:
    answers = ["1.1.1.1", "1.0.0.1"]
    answers.insert(place, "169.254.169.254")
    guard = guarded(Names(mixed=answers))
    with pytest.raises(Refused) as refused:
        await guard.resolve("mixed", 443)
    text = f"{REFUSED_ADDRESS}; allow it with the option --allow"
    assert (str(refused.value), refused.value.kind) == (text, "address")


async def test_a_refused_answer_far_down_a_long_list_refuses_too() -> None:
    many = [f"1.1.1.{n}" for n in range(200)]
    guard = guarded(Names(many=many, bad=[*many, "127.0.0.1"]))
    assert len(await guard.resolve("many", 443)) == 8
    with pytest.raises(Refused):
        await guard.resolve("bad", 443)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254"])
async def test_the_socket_factory_refuses_unresolved_addresses(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(Refused):
        guarded(Names()).open_socket((family, socket.SOCK_STREAM, 6, "", (address, 443)))


async def test_many_senders_share_one_look_up() -> None:
    names = Names(good=["1.1.1.1"])
    guard = guarded(names)
    addresses = await asyncio.gather(*(guard.resolve("good", 443) for _ in range(50)))
    assert names.hosts == ["good"]
    assert len(addresses) == 50


async def test_failures_are_cached_and_then_tried_again() -> None:
    names, clock = Names(), Clock()
    guard = guarded(names, clock)
    for _ in range(3):
        with pytest.raises(LookupFailed, match="no such host"):
            await guard.resolve("gone", 443)
    assert names.hosts == ["gone"]
    names.answers["gone"] = ["1.1.1.1"]
    clock.ahead += FAILED_SECONDS
    assert await guard.resolve("gone", 443)


async def test_a_cached_result_is_used_while_the_name_servers_are_down() -> None:
    names, clock = Names(good=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    await guard.resolve("good", 443)
    del names.answers["good"]
    clock.ahead += FRESH_SECONDS
    assert await guard.resolve("good", 443)
    assert names.hosts == ["good", "good"]
    clock.ahead += STALE_SECONDS
    with pytest.raises(LookupFailed):
        await guard.resolve("good", 443)


@pytest.mark.slow
async def test_a_cached_result_is_used_when_a_new_one_takes_long() -> None:
    names, clock = Names(slow=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    await guard.resolve("slow", 443)
    names.hold.clear()
    clock.ahead += FRESH_SECONDS
    assert await guard.resolve("slow", 443)
    names.hold.set()


async def test_a_slow_look_up_fails_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", 0.05)
    names, clock = Names(slow=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    names.hold.clear()
    with pytest.raises(LookupFailed, match="in time"):
        await guard.resolve("slow", 443)
    # The thread still runs; its late result is used once the failure has expired.
    with pytest.raises(LookupFailed, match="in time"):
        await guard.resolve("slow", 443)
    names.hold.set()
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", HANG_SECONDS)
    clock.ahead += FAILED_SECONDS
    assert await guard.resolve("slow", 443)
    assert names.hosts.count("slow") <= 2


@pytest.mark.slow
async def test_dead_names_leave_threads_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", HANG_SECONDS)
    names, clock = Names(good=["1.1.1.1"]), Clock()
    guard = guarded(names, clock)
    dead = [f"dead{n}" for n in range(100)]
    await asyncio.gather(*(guard.resolve(name, 443) for name in dead), return_exceptions=True)
    clock.ahead += FAILED_SECONDS
    slow = threading.Event()

    names.wait = lambda host: host.startswith("dead") and slow.wait(HANG_SECONDS)
    asking = [asyncio.create_task(guard.resolve(name, 443)) for name in dead]
    await asyncio.sleep(0)
    assert await guard.resolve("good", 443)
    slow.set()
    await asyncio.gather(*asking, return_exceptions=True)


@pytest.mark.slow
async def test_a_name_that_failed_once_does_not_wait_for_dead_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("outbox.sending.lookups.DEADLINE_SECONDS", HANG_SECONDS)
    monkeypatch.setattr("outbox.sending.lookups.SLOW_SECONDS", 0.01)
    monkeypatch.setattr("outbox.sending.lookups.MOST_SLOW", 132)
    monkeypatch.setattr("outbox.sending.lookups.MOST_SLOW_SUSPECTS", 100)
    names, clock = Names(), Clock()
    guard = guarded(names, clock)
    all_names = [*(f"dead{n}" for n in range(100)), "good"]
    # The name servers failed for a moment.
    await asyncio.gather(*(guard.resolve(name, 443) for name in all_names), return_exceptions=True)
    names.answers |= {"good": ["1.1.1.1"], "new": ["1.1.1.1"]}
    clock.ahead += FAILED_SECONDS
    slow = threading.Event()
    names.wait = lambda host: host.startswith(("dead", "slow")) and slow.wait(HANG_SECONDS)
    asking = [asyncio.create_task(guard.resolve(name, 443)) for name in all_names]
    assert await asking[-1]
    # Names that are only slow still leave their threads to others.
    asking[-1:] = [asyncio.create_task(guard.resolve(f"slow{n}", 443)) for n in range(40)]
    assert await guard.resolve("new", 443)
    assert not any(task.done() for task in asking)
    slow.set()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_closing_abandons_running_look_ups() -> None:
    names = Names(slow=["1.1.1.1"])
    names.hold.clear()
    guard = guarded(names)
    asking = asyncio.create_task(guard.resolve("slow", 443))
    while not names.at_once:
        await asyncio.sleep(0)
    await guard.close()
    with pytest.raises(LookupFailed):
        await asking
    names.hold.set()


@pytest.mark.parametrize("name", ["a..b", "n" * 300])
def test_a_name_that_cannot_be_asked_for_is_a_failure(name: str) -> None:
    with pytest.raises(LookupFailed):
        ask_system(name)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (socket.EAI_NONAME, "no such host"),
        (socket.EAI_AGAIN, "the name servers did not respond"),
        (socket.EAI_FAIL, "the name look-up failed"),
    ],
)
def test_the_systems_errors_in_a_few_words(
    code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(code, "")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(LookupFailed, match=f"^{text}$"):
        ask_system("example.com")
