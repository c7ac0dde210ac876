"""GET a page of twenty of every resource, against a bare handler that returns the same bytes.

A first page that has not changed is sent again as it was; a further page is read whole each time.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

from gateway.domain.catalogue import RESOURCES
from gateway.rest.document.operations import path_of
from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.read_path import call
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage
from tests.benchmarks.stocked import stock
from tests.benchmarks.usage import seconds

PAGE = 20
RECORDS = 200
SHARE = 6
"""Each resource has this part of the time that other benchmarks have."""
LEAST_SECONDS = 0.3
"""A shorter run can end on a busy machine before its first response."""
OF_BARE = 0.25


async def pages(size: Size) -> Verdict:
    """Measure ratios of pages per second, and the CPU time of a page in microseconds."""
    verdict = Verdict("pages")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name, ExitStack() as ends:
        folder = Path(name)
        stage = Stage(f"sqlite:///{folder}/carteiro.db", folder)
        await stage.prepare()
        [person] = await stage.people([[]])
        async with stage.opened() as db:
            await stock(db, person.id, RECORDS)
        log = folder / "children.log"
        api = ends.enter_context(product(stage.environment(), folder, "api"))
        asked: list[tuple[str, str, str, str]] = []
        for resource in RESOURCES:
            path = f"{path_of(resource)}?limit={PAGE}"
            first = call(api.port, path, person.key).decode()
            onward = f"{path}&cursor={json.loads(first)['nextCursor']}"
            asked.append(("first", resource.table, path, first))
            further = call(api.port, onward, person.key).decode()
            asked.append(("further", f"{resource.table}_further", onward, further))
        bodies = [body for *_, body in asked]
        bare = ends.enter_context(child("tests.benchmarks.bare", "fixed", *bodies, log=log))
        bare_port = bare.json()["port"]
        least = {"first": float("inf"), "further": float("inf")}
        for number, (kind, word, path, body) in enumerate(asked):
            if len(json.loads(body)["data"]) != PAGE:
                verdict.broken.append(f"{word}: not {PAGE} records")
            rates: dict[str, list[float]] = {"bare": [], "api": []}
            spent = {"bare": 0.0, "api": 0.0}
            count = {"bare": 0, "api": 0}
            for _ in range(size.runs):
                for side, process, port, wanted in (
                    ("bare", bare.process.pid, bare_port, f"/{number}"),
                    ("api", api.process.pid, api.port, path),
                ):
                    before = seconds([process])
                    spec = {
                        "port": port,
                        "connections": size.connections,
                        "warm_up": 0,
                        "seconds": max(size.seconds / SHARE, LEAST_SECONDS),
                        "expect": 200,
                        "requests": [request("GET", wanted, X_API_Key=person.key)],
                    }
                    done = answer_of("tests.benchmarks.load", log, spec)
                    spent[side] += seconds([process]) - before
                    count[side] += done["count"]
                    rates[side].append(done["rate"])
                    if done["bad"] or done["gone"] or not done["count"]:
                        verdict.broken.append(f"{word}: {done['bad']} bad, {done['gone']} gone")
            ratio = median(rates["api"]) / median(rates["bare"])
            least[kind] = min(least[kind], ratio)
            verdict.figures[f"{word}_per_s"] = round(median(rates["api"]))
            verdict.figures[f"{word}_of_bare"] = round(ratio, 3)
            verdict.figures[f"{word}_bytes"] = len(body)
            for side in spent:
                cost = spent[side] / max(count[side], 1) * 1e6
                verdict.figures[f"{word}_{side}_cpu_us"] = round(cost)
    for kind, ratio in least.items():
        verdict.at_least(f"{kind}_of_bare", ratio, OF_BARE)
    return verdict
