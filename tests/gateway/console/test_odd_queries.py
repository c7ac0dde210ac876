"""Every page of the console with a query that no page of ours sends."""

from __future__ import annotations

from tests.gateway.console.test_owners import routes
from tests.support.console import Guest

NOWHERE = "f" * 24
ODD = ("%00", "%ED%A0%80", "9" * 400, "%25_")
NAMES = (
    "q", "search", "stage", "record", "actor", "action", "first", "month", "day", "before",
    "sort", "limit", "page", "column", "state", "event", "webhook", "since", "until", "range",
    "seen", "done", "next",
)  # fmt: skip


async def test_no_odd_query_breaks_a_page(maria: Guest) -> None:
    pages = [path.replace("{id}", NOWHERE) for method, path in routes() if method == "GET"]
    for odd, after in zip(ODD, (ODD[0], f"1-{NOWHERE}", ODD[2], ODD[3]), strict=True):
        told = "&".join(f"{name}={odd}" for name in NAMES)
        for path in pages:
            seen = await maria.get(f"{path}?{told}&after={after}")
            assert seen.status < 500, (path, odd, after)
