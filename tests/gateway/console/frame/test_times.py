"""Times that are typed: in the zone of the account, with hours that come twice or never."""

import pytest

from gateway.console.frame import times
from gateway.records.values import dates

ZONE = "America/New_York"


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("2026-07-01T12:00", "2026-07-01T16:00:00.000Z", "2026-07-01T16:00:00.000Z"),
        ("2026-11-01T00:30", "2026-11-01T04:30:00.000Z", "2026-11-01T04:30:00.000Z"),
        # Clocks go back at 02:00: a range has both passes of the hour.
        ("2026-11-01T01:30", "2026-11-01T05:30:00.000Z", "2026-11-01T06:30:00.000Z"),
        ("2026-11-01T02:00", "2026-11-01T07:00:00.000Z", "2026-11-01T07:00:00.000Z"),
        # Clocks go forward at 02:00: there is no 02:30, it counts as 03:30.
        ("2026-03-08T02:30", "2026-03-08T07:30:00.000Z", "2026-03-08T07:30:00.000Z"),
        ("2026-03-08T03:30", "2026-03-08T07:30:00.000Z", "2026-03-08T07:30:00.000Z"),
        ("2026-07-01T12:00:00Z", "2026-07-01T12:00:00.000Z", "2026-07-01T12:00:00.000Z"),
    ],
)
def test_a_typed_time_is_that_of_the_zone(text: str, begins: str, ends: str) -> None:
    moments = (times.typed(text, ZONE), times.typed(text, ZONE, ends=True))
    assert [dates.show(one) for one in moments if one is not None] == [begins, ends]


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01T00:00", "0001-01-01T00:00", "2026-01-01T00:00+01:00", "Z"]
)
def test_other_texts_are_no_times(text: str) -> None:
    assert times.typed(text, ZONE) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-07-01T12:00", "2026-07-01T12:00"),
        ("2026-07-01T16:00:00.000Z", "2026-07-01T12:00"),
        ("2026-01-01T16:00:07.000Z", "2026-01-01T11:00:07"),
        ("never", "never"),
    ],
)
def test_what_was_typed_comes_back_in_the_zone(text: str, shown: str) -> None:
    assert times.shown(text, ZONE) == shown
