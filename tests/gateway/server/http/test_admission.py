"""Who gets a place, how long it may be held idle, and who loses it."""

from heapq import nsmallest

import pytest

from gateway.server.http import admission
from gateway.server.http.admission import Admission

Waiting = tuple[float, int, "Client"]


class Client:
    """A client that lets the server wait since a time, with a body if it is slow."""

    def __init__(self, holder: str = "", since: float | None = None, slow: bool = False) -> None:
        self.holder = holder
        self.waited_since = since
        self.slow_since = since if slow else None
        self.evicted = False

    def evict(self) -> None:
        self.evicted = True


def test_whoever_is_served_keeps_the_place() -> None:
    places = Admission(2, 2, lambda: 0.0)
    first, second, late = Client(), Client(), Client()
    assert places.admit(first, "a")
    assert places.admit(second, "b")
    assert not places.admit(late, "c")
    places.release(late, "c")
    places.release(first, "a")
    assert places.admit(late, "c")


def test_an_address_with_all_its_places_loses_a_slow_body_alone() -> None:
    places = Admission(9, 2, lambda: 100.0)
    idle, slow = Client("a", 1.0), Client("owner", 90.0, slow=True)
    assert places.admit(idle, "a")
    assert places.admit(slow, "a")
    assert places.admit(Client(), "a")
    assert (idle.evicted, slow.evicted) == (False, True)
    assert not places.admit(Client(), "a")


def test_a_flood_looks_at_all_connections_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was busy meanwhile keeps its place, although it was chosen."""
    places = Admission(320, 320, lambda: 0.0)
    held = [Client("greedy", float(number), slow=True) for number in range(300)]
    held += [Client("honest", 0.0, slow=True) for _ in range(20)]
    assert all(places.admit(one, "a") for one in held)
    looks = 0

    def counted(
        most: int, some: list[tuple[float, int, Client]]
    ) -> list[tuple[float, int, Client]]:
        nonlocal looks
        looks += 1
        return nsmallest(most, some)

    monkeypatch.setattr(admission, "nsmallest", counted)
    assert places.admit(Client("new"), "b")
    held[1].waited_since = 1_000.0
    for _ in range(16):
        assert places.admit(Client("new"), "b")
    assert looks == 1
    assert [one.evicted for one in held] == [n != 1 and n < 18 for n in range(320)]


@pytest.mark.parametrize(("least", "cut"), [(8, 2), (99, 0)])
def test_a_holder_has_few_slow_bodies(
    monkeypatch: pytest.MonkeyPatch, least: int, cut: int
) -> None:
    monkeypatch.setattr(admission, "LEAST_SLOW", least)
    places = Admission(100, 100, lambda: 100.0)
    slow = [Client("greedy", 50.0 + number, slow=True) for number in range(10)]
    brisk = [Client("greedy", 99.0, slow=True) for _ in range(10)]
    for one in (*slow, *brisk, *(Client("other", 1.0, slow=True) for _ in range(8))):
        assert places.admit(one, "a")
    assert [*places.too_many_slow()] == slow[:cut]
