"""A write and reads on SQLite (FULL), in turn with bare programs that exchange the same bytes.

A first page that has not changed is sent again as it was; a further page is read whole each time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median

from gateway.domain.catalogue import RESOURCES
from gateway.rest.document.operations import path_of
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.benchmarks.children import child
from tests.benchmarks.figures import Size, Verdict, rounded
from tests.benchmarks.load import request
from tests.benchmarks.site import Site, site
from tests.support.stocked import stock

CONNECTIONS = 64
SECONDS, SHORT_SECONDS = 3.0, 0.5
WARM_UP = 1 / 3
"""Before a run counts, this share of its seconds passes."""
OVER_STATEMENTS, WRITE_OF_BARE = 4.0, 0.3
RAW_OVER_BARE = 1.5
"""How much faster than any measured server the load must be, shown by the receiver as a server."""
PAGE, RECORDS = 20, 200
ONE_OF_BARE, PAGE_OF_BARE = 0.4, 0.25


@dataclass(frozen=True)
class Side:
    """What one program is asked, and the status of its answers."""

    port: int
    request: str
    expect: int = 200


async def _rates(
    here: Site, sides: Mapping[str, Side], size: Size, seconds: float = SECONDS
) -> dict[str, tuple[float, float]]:
    """Return the medians of requests a second and of p99 in milliseconds, by side."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for _ in range(size.runs):
        for name, side in sides.items():
            done = await here.load(
                side.port, [side.request], expect=side.expect, connections=CONNECTIONS,
                warm_up=WARM_UP * size.seconds(seconds), seconds=size.seconds(seconds),
            )  # fmt: skip
            found[name].append((done["rate"], done["p99_ms"]))
    return {
        name: (median([rate for rate, _ in runs]), median([p99 for _, p99 in runs]))
        for name, runs in found.items()
    }


async def write_path(size: Size) -> Verdict:
    """Measure ratios of writes per second without delivery; with delivery, printed beside."""
    verdict = Verdict("write_path")
    async with AsyncExitStack() as ends:
        here = await ends.enter_async_context(site())
        off, on, slow = [
            await ends.enter_async_context(here.place(name)) for name in ("off", "on", "slow")
        ]
        api = ends.enter_context(here.node(off, "api"))
        whole = ends.enter_context(here.node(on))
        echo, statements = (
            ends.enter_context(child("tests.benchmarks.bare", *words, log=here.log)).json()["port"]
            for words in (("echo",), ("statements", slow.url.removeprefix("sqlite:///")))
        )
        [write], [delivered] = off.writes(), on.writes()
        sides = {
            "raw": Side(here.port, write),
            "bare": Side(echo, write, 201),
            "delivery_off": Side(api.port, write, 201),
            "statements": Side(statements, write, 201),
            "delivery_on": Side(whole.port, delivered, 201),
        }
        found = await _rates(here, sides, size)
    rate = {name: per_second for name, (per_second, _) in found.items()}
    for name, (per_second, p99) in found.items():
        verdict.figures |= {f"{name}_per_s": round(per_second), f"{name}_p99_ms": rounded(p99)}
    verdict.at_least("raw_over_bare", rate["raw"] / rate["bare"], RAW_OVER_BARE)
    verdict.at_least("over_statements", rate["delivery_off"] / rate["statements"], OVER_STATEMENTS)
    verdict.at_least("of_bare", rate["delivery_off"] / rate["bare"], WRITE_OF_BARE)
    verdict.figures["of_bare_delivery_on"] = rounded(rate["delivery_on"] / rate["bare"])
    return verdict


async def read_path(size: Size) -> Verdict:
    """Measure ratios of reads per second: one contact, its first page, and pages of any kind."""
    verdict, found = Verdict("read_path"), dict[str, tuple[float, float]]()
    async with site() as here, here.place("read", webhooks=0) as place:
        [(owner, key)] = place.tenants.keys.items()
        db = await database.open(place.url, clock=SystemClock(), ids=Ids())
        last = await stock(db, owner, RECORDS)
        await db.close()
        with here.node(place, "api") as api:

            def body_of(path: str) -> str:
                status, body, _ = api.ask(path, headers={"X-API-Key": key})
                assert status == 200, path
                return body.decode()

            paths = {"one": f"/api/contacts/{last['contacts']}"}
            for resource in RESOURCES:
                first = paths[f"first {resource.table}"] = f"{path_of(resource)}?limit={PAGE}"
                cursor = json.loads(body_of(first))["nextCursor"]
                paths[f"further {resource.table}"] = f"{first}&cursor={cursor}"
            bodies = [body_of(path) for path in paths.values()]
            with child("tests.benchmarks.bare", "fixed", log=here.log, spec=bodies) as fixed:
                bare = fixed.json()["port"]
                for number, (name, path) in enumerate(paths.items()):
                    sides = {
                        "bare": Side(bare, request("GET", f"/{number}", X_API_Key=key)),
                        "api": Side(api.port, request("GET", path, X_API_Key=key)),
                    }
                    seconds = SECONDS if name in ("one", "first contacts") else SHORT_SECONDS
                    rate = await _rates(here, sides, size, seconds)
                    found[name] = rate["api"][0], rate["api"][0] / rate["bare"][0]
    for what, name, bar in (
        ("one", "one", ONE_OF_BARE), ("page", "first contacts", PAGE_OF_BARE),
    ):  # fmt: skip
        verdict.figures[f"{what}_per_s"] = round(found[name][0])
        verdict.at_least(f"{what}_of_bare", found[name][1], bar)
    for kind in ("first", "further"):
        pages = [pair for name, pair in found.items() if name.startswith(kind)]
        verdict.figures[f"{kind}_slowest_per_s"] = round(min(rate for rate, _ in pages))
        verdict.figures[f"{kind}_fastest_per_s"] = round(max(rate for rate, _ in pages))
        verdict.figures[f"{kind}_least_of_bare"] = rounded(min(share for _, share in pages))
    return verdict
