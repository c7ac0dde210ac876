"""Times that are typed: in the zone of the account, with hours that come twice or never."""

from gateway.console.frame import times
from gateway.records.values import dates

ZONE = "America/New_York"


def test_a_typed_time_is_that_of_the_zone() -> None:
    for text, begins, ends in (
        ("2026-07-01T12:00", "2026-07-01T16:00", "2026-07-01T16:00"),
        ("2026-11-01T00:30", "2026-11-01T04:30", "2026-11-01T04:30"),
        # Clocks go back at 02:00: a range has both passes of the hour.
        ("2026-11-01T01:30", "2026-11-01T05:30", "2026-11-01T06:30"),
        ("2026-11-01T02:00", "2026-11-01T07:00", "2026-11-01T07:00"),
        # Clocks go forward at 02:00: there is no 02:30, it counts as 03:30.
        ("2026-03-08T02:30", "2026-03-08T07:30", "2026-03-08T07:30"),
        ("2026-03-08T03:30", "2026-03-08T07:30", "2026-03-08T07:30"),
        ("2026-07-01T12:00:00Z", "2026-07-01T12:00", "2026-07-01T12:00"),
    ):
        moments = (times.typed(text, ZONE), times.typed(text, ZONE, ends=True))
        found = [dates.show(one) for one in moments if one is not None]
        assert found == [f"{begins}:00.000Z", f"{ends}:00.000Z"], text


def test_other_texts_are_no_times() -> None:
    for text in ("", "soon", "2026-13-01T00:00", "0001-01-01T00:00", "2026-01-01T00:00+01:00", "Z"):
        assert times.typed(text, ZONE) is None
    assert times.shown("2026-01-01T16:00:07.000Z", ZONE) == "2026-01-01T11:00:07"
    assert times.shown("never", ZONE) == "never"
