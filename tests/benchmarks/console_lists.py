"""GET a list of fifty records in the console, against the page of the same fifty in the REST API.

Both are further pages, which are read whole each time; the console's has its head, menu and form.
"""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

from gateway.console.records.sections import SECTIONS
from gateway.domain.accounts import sessions
from gateway.rest.document.operations import path_of
from outbox.database.transaction import Tx
from outbox.durations import HOUR
from tests.benchmarks.children import answer_of
from tests.benchmarks.figures import Verdict, median
from tests.benchmarks.load import request
from tests.benchmarks.pages import LEAST_SECONDS, RECORDS, SHARE
from tests.benchmarks.product import product
from tests.benchmarks.read_path import call
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage
from tests.benchmarks.stocked import stock
from tests.benchmarks.usage import seconds

PAGE = 50
TIMES = 3.0
"""What a page of the console may cost, in pages of the REST API."""
TOKEN = "t" * 43


async def _created(tx: Tx, table: str, record_id: str) -> int:
    row = await tx.one(f"select created_at from {table} where id = $1", record_id)
    return int(row[0]) if row else 0


async def console_lists(size: Size) -> Verdict:
    """Measure the CPU time of both pages in microseconds, and their ratio for each resource."""
    verdict = Verdict("console_lists")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name, ExitStack() as ends:
        folder = Path(name)
        stage = Stage(f"sqlite:///{folder}/carteiro.db", folder)
        await stage.prepare()
        [person] = await stage.people([[]])
        async with stage.opened() as db:
            await stock(db, person.id, RECORDS)
            await db.write(
                sessions.start, person.id, TOKEN, lifetime=24 * HOUR, address="127.0.0.1",
                agent="bench",
            )  # fmt: skip
        log = folder / "children.log"
        api = ends.enter_context(product(stage.environment(), folder, "api"))
        times: list[float] = []
        for section in SECTIONS.values():
            path, word = f"{path_of(section.resource)}?limit={PAGE}", section.resource.table
            first = json.loads(call(api.port, path, person.key))
            last = first["data"][-1]["id"]
            async with stage.opened() as db:
                micros = await db.read(_created, section.resource.table, last)
            sides = {
                "rest": request("GET", f"{path}&cursor={first['nextCursor']}",
                                X_API_Key=person.key),
                "console": request("GET", f"{section.path}?limit={PAGE}&after={micros}-{last}",
                                   Cookie=f"carteiro={TOKEN}"),
            }  # fmt: skip
            rates: dict[str, list[float]] = {"rest": [], "console": []}
            cost: dict[str, list[float]] = {"rest": [], "console": []}
            for _ in range(size.runs):
                for side, wanted in sides.items():
                    before = seconds([api.process.pid])
                    spec = {
                        "port": api.port, "connections": size.connections, "warm_up": 0,
                        "seconds": max(size.seconds / SHARE, LEAST_SECONDS), "expect": 200,
                        "requests": [wanted],
                    }  # fmt: skip
                    done = answer_of("tests.benchmarks.load", log, spec)
                    spent = seconds([api.process.pid]) - before
                    cost[side].append(spent / max(done["count"], 1) * 1e6)
                    rates[side].append(done["rate"])
                    if done["bad"] or done["gone"] or not done["count"]:
                        verdict.broken.append(f"{word}: {done['bad']} bad, {done['gone']} gone")
            ratio = median(cost["console"]) / max(median(cost["rest"]), 1)
            times.append(ratio)
            verdict.figures[f"{word}_of_rest"] = round(ratio, 2)
            for side in sides:
                verdict.figures[f"{word}_{side}_per_s"] = round(median(rates[side]))
                verdict.figures[f"{word}_{side}_cpu_us"] = round(median(cost[side]))
    verdict.at_most("median_of_rest", median(times), TIMES)
    return verdict
