"""Check that the load generator is not the limit: its rate against a minimal server."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median
from tests.benchmarks.load import request
from tests.benchmarks.sizes import Size
from tests.benchmarks.write_path import CONTACT

OVER_BARE = 1.5


async def load_generator(size: Size) -> Verdict:
    """Compare the load on a raw socket server with the fastest server measured."""
    verdict = Verdict("load_generator")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name, ExitStack() as ends:
        log = Path(name) / "children.log"
        raw = ends.enter_context(child("tests.benchmarks.receiver", log=log)).json()["port"]
        bare = ends.enter_context(child("tests.benchmarks.bare", "echo", log=log)).json()["port"]
        rates: dict[str, list[float]] = {"raw": [], "bare": []}
        for _ in range(size.runs):
            for what, port, status in (("raw", raw, 200), ("bare", bare, 201)):
                spec = {
                    "port": port,
                    "connections": size.connections,
                    "warm_up": size.warm_up,
                    "seconds": size.seconds / 2,
                    "expect": status,
                    "requests": [request("POST", "/api/contacts", CONTACT)],
                }
                rates[what].append(answer_of("tests.benchmarks.load", log, spec)["rate"])
    verdict.figures |= {f"{what}_per_s": round(median(found)) for what, found in rates.items()}
    verdict.at_least("raw_over_bare", median(rates["raw"]) / median(rates["bare"]), OVER_BARE)
    return verdict
