"""GET one contact, and a page of twenty, against a bare handler that returns the same bytes."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage
from tests.benchmarks.write_path import CONTACT

RECORDS = 200
PAGE = "/api/contacts?limit=20"
ONE_OF_BARE = 0.4
PAGE_OF_BARE = 0.25


async def read_path(size: Size) -> Verdict:
    """Measure ratios of reads per second."""
    verdict = Verdict("read_path")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name, ExitStack() as ends:
        folder = Path(name)
        log = folder / "children.log"
        stage = Stage(f"sqlite:///{folder}/carteiro.db", folder)
        await stage.prepare()
        [person] = await stage.people([[]])
        api = ends.enter_context(product(stage.environment(), folder, "api"))
        for _ in range(RECORDS):
            made = json.loads(call(api.port, "/api/contacts", person.key, CONTACT))
        paths = {"one": f"/api/contacts/{made['id']}", "page": PAGE}
        bodies = [call(api.port, path, person.key).decode() for path in paths.values()]
        bare = ends.enter_context(child("tests.benchmarks.bare", "fixed", *bodies, log=log)).json()
        rates: dict[str, list[float]] = {}
        for _ in range(size.runs):
            for number, (what, path) in enumerate(paths.items()):
                for side, port, asked in (
                    (f"{what}_bare", bare["port"], f"/{number}"),
                    (what, api.port, path),
                ):
                    done = _load(log, port, request("GET", asked, X_API_Key=person.key), size)
                    if done["bad"] or done["gone"] or not done["count"]:
                        verdict.broken.append(f"{side}: {done['bad']} bad, {done['gone']} gone")
                    rates.setdefault(side, []).append(done["rate"])
    middle = {side: median(found) for side, found in rates.items()}
    verdict.figures |= {f"{side}_per_s": round(rate) for side, rate in middle.items()}
    verdict.at_least("one_of_bare", middle["one"] / middle["one_bare"], ONE_OF_BARE)
    verdict.at_least("page_of_bare", middle["page"] / middle["page_bare"], PAGE_OF_BARE)
    return verdict


def _load(log: Path, port: int, asked: str, size: Size) -> Any:
    spec = {
        "port": port,
        "connections": size.connections,
        "warm_up": size.warm_up,
        "seconds": size.seconds,
        "expect": 200,
        "requests": [asked],
    }
    return answer_of("tests.benchmarks.load", log, spec)


def call(port: int, path: str, key: str, body: bytes | None = None) -> bytes:
    """Return the body of a response; without a body the request is a GET."""
    headers = {"X-API-Key": key} | ({"Content-Type": "application/json"} if body else {})
    asked = Request(f"http://127.0.0.1:{port}{path}", data=body, headers=headers)
    with urlopen(asked, timeout=30) as answer:
        found: bytes = answer.read()
        return found
