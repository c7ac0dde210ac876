"""Who gets a place, and how long it may be held idle."""

import pytest

from gateway.server.http.admission import Admission


class Nobody:
    """A guest for whom the server is at work."""

    waited_since: float | None = None

    def evict(self) -> None:
        raise AssertionError("nobody waits")


def test_whoever_is_served_keeps_the_place() -> None:
    places = Admission(2, 2)
    first, second, late = Nobody(), Nobody(), Nobody()
    assert places.admit(first, "a")
    assert places.admit(second, "b")
    assert not places.admit(late, "c")
    places.release(late, "c")
    places.release(first, "a")
    assert places.admit(late, "c")


def test_how_long_a_connection_may_be_idle() -> None:
    places = Admission(10, 10)
    found = [places.idle_seconds(60)]
    for _ in range(10):
        assert places.admit(Nobody(), "a")
        found.append(places.idle_seconds(60))
    assert found == pytest.approx([60] * 6 + [48, 36, 24, 12, 1])
