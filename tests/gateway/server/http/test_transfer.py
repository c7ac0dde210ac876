"""How far behind a client falls with a body or a response."""

import pytest

from gateway.server.config import Limits
from gateway.server.http.transfer_pace import BRISK_RATE, Transfer

LIMITS = Limits()
SLOWEST = LIMITS.least_bytes_per_second
MOBILE = 2_500
"""Bytes a second of the slowest mobile networks."""


@pytest.mark.parametrize(
    ("a_second", "gap", "rate", "cut"),
    [
        (SLOWEST // 2, 0, SLOWEST, True),
        (SLOWEST, 0, SLOWEST, False),
        # A mobile client in a tunnel, and one that never comes out of it.
        (MOBILE, 29, SLOWEST, False),
        (MOBILE, 32, SLOWEST, True),
        (1, 0, SLOWEST, True),
        # Without a rate only a gap counts.
        (1, 0, 0, False),
        (1, 32, 0, True),
    ],
)
def test_a_client_keeps_to_a_least_rate(a_second: int, gap: int, rate: int, cut: bool) -> None:
    """A burst at the beginning buys no time later."""
    pace, moved, found = Transfer(0.0, 0), 2_000_000, list[float]()
    for second in range(200):
        found.append(pace.behind(float(second), moved, rate, awaited=True))
        moved += a_second * (not 60 <= second < 60 + gap)
    assert max(found[:30]) <= LIMITS.body_seconds
    assert (max(found) > LIMITS.body_seconds) == cut


def test_a_server_that_does_not_read_waits_for_nobody() -> None:
    pace = Transfer(0.0, 0)
    for second in range(4_000):
        assert pace.behind(float(second), 0, SLOWEST, awaited=False) == 0
    assert pace.behind(4_010.0, 0, SLOWEST, awaited=True) == 11
    assert pace.lasted == 11


def test_a_brisk_client_lets_nobody_wait() -> None:
    brisk, slow = Transfer(0.0, 0), Transfer(0.0, 0)
    for second in range(1, 21):
        brisk.behind(float(second), BRISK_RATE * second, SLOWEST, awaited=True)
        slow.behind(float(second), SLOWEST * second, SLOWEST, awaited=True)
    assert (brisk.since, round(slow.since)) == (20.0, 0)
