"""Every page of the console with a query that no page of ours sends."""

from __future__ import annotations

import pytest

from tests.gateway.console.test_owners import routes
from tests.support.console import Guest

NOWHERE = "f" * 24
ODD = ("%00", "a%00b", "%ED%A0%80", "%ff", "9" * 400, "%25_")
NAMES = (
    "q", "search", "stage", "record", "actor", "action", "first", "month", "day", "before",
    "sort", "limit", "page", "column", "state", "event", "webhook", "since", "until", "range",
    "seen", "done", "next",
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
async def test_no_odd_query_breaks_a_page(maria: Guest, odd: str) -> None:
    told = "&".join(f"{name}={odd}" for name in NAMES)
    for method, path in routes():
        if method != "GET":
            continue
        for after in (odd, f"1-{NOWHERE}"):
            seen = await maria.get(f"{path.replace('{id}', NOWHERE)}?{told}&after={after}")
            assert seen.status < 500, (path, after)
