"""Who gets a place, and how long it may be held idle."""

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
