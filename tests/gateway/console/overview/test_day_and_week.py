"""The last day beside the last week: the figures of one webhook, and of all of an owner."""

from __future__ import annotations

import re

from outbox.durations import HOUR
from outbox.queue.state.attempt_counts import STEP
from tests.support.console import Guest
from tests.support.figures import fill
from tests.support.site import Site

MADE = re.compile(r'<tr><th scope="row">([^<]+)</th>(.*?)</tr>', re.S)


def totals(html: str) -> dict[str, list[str]]:
    table = html.partition('data-testid="totals"')[2].partition("</table>")[0]
    return {
        name: [cell.strip() for cell in re.findall(r"<td[^>]*>([^<]*)</td>", cells)]
        for name, cells in MADE.findall(table)
    }


async def test_both_ranges_are_added_up(console: Site, maria: Guest, rui: Guest) -> None:
    one = await maria.webhook("https://one.example/")
    two = await maria.webhook("https://two.example/")
    now = console.db.clock.wall()
    last = now // STEP * STEP
    await console.db.write(fill, one.id, now, lambda at: [("success", 3 * (at == last), 30_000)])
    old = (now - 72 * HOUR) // STEP * STEP
    await console.db.write(
        fill, two.id, now,
        lambda at: [("http_5xx", 2 * (at == old), 30_000), ("exhausted", 1 * (at == old), 0)],
    )  # fmt: skip
    every = totals((await maria.get("/console/charts")).html)
    assert every["Delivered"] == ["3", "3"]
    assert every["Failed attempts"] == ["0", "2"]
    assert every["Given up"] == ["0", "1"]
    assert every["Success rate"] == ["100 %", "60 %"]
    assert totals((await maria.get(f"/console/charts?webhook={two.id}")).html)["Delivered"] == [
        "0", "0",
    ]  # fmt: skip
    page = await maria.get(f"/console/charts?webhook={one.id}")
    assert page.html.count('id="chart-attempts-') == 2
    assert totals(page.html)["Median"] != ["–", "–"]
    assert (await rui.get(f"/console/charts?webhook={one.id}")).status == 403
    assert totals((await rui.get("/console/charts")).html)["Delivered"] == ["0", "0"]
    assert (await maria.get("/console/charts?webhook=x")).status == 404
    assert "/console/charts" in (await maria.get("/console")).html
    assert f"/console/charts?webhook={one.id}" in (await maria.get(one.path)).html
