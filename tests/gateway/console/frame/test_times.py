"""Times that are typed: in the zone of the account, with hours that come twice or never."""

import pytest

from gateway.console.frame import times

ZONE = "America/New_York"


@pytest.mark.parametrize(
    "text", ["", "soon", "2026-13-01T00:00", "0001-01-01T00:00", "2026-01-01T00:00+01:00", "Z"]
)
def test_other_texts_are_no_times(text: str) -> None:
    assert times.typed(text, ZONE) is None
