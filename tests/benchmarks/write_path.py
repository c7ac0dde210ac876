"""POST /api/contacts on SQLite (FULL) against a bare handler and a statement-by-statement write."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median, rounded
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage

CONTACT = json.dumps(
    {
        "name": "Maria da Conceição Almeida",
        "email": "maria.almeida@example.com",
        "phone": "+55 11 98888-7777",
        "position": "Compradora",
    },
    ensure_ascii=False,
).encode()
OVER_STATEMENTS = 4.0
OF_BARE = 0.3


async def write_path(size: Size) -> Verdict:
    """Measure ratios of writes per second without delivery; with delivery, printed beside."""
    verdict = Verdict("write_path")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name, ExitStack() as ends:
        folder = Path(name)
        log = folder / "children.log"
        receiver = ends.enter_context(child("tests.benchmarks.receiver", log=log)).json()
        stages = [Stage(f"sqlite:///{folder / part / 'c.db'}", folder / part) for part in "abc"]
        keys = []
        for stage in stages:
            stage.folder.mkdir()
            await stage.prepare()
            [person] = await stage.people([[f"http://127.0.0.1:{receiver['port']}/hook"]])
            keys.append(person.key)
        environments = [stage.environment(receiver["port"]) for stage in stages]
        api = ends.enter_context(product(environments[0], stages[0].folder, "api"))
        whole = ends.enter_context(product(environments[1], stages[1].folder, "all"))
        echo = ends.enter_context(child("tests.benchmarks.bare", "echo", log=log)).json()
        file = str(stages[2].folder / "c.db")
        slow = ends.enter_context(child("tests.benchmarks.bare", "statements", file, log=log))
        targets = {
            "bare": (echo["port"], keys[0]),
            "delivery_off": (api.port, keys[0]),
            "statements": (slow.json()["port"], keys[0]),
            "delivery_on": (whole.port, keys[1]),
        }
        rates: dict[str, list[float]] = {target: [] for target in targets}
        latency: dict[str, list[float]] = {target: [] for target in targets}
        for _ in range(size.runs):
            for target, (port, key) in targets.items():
                done = load(log, port, key, size)
                if done["bad"] or done["gone"] or not done["count"]:
                    verdict.broken.append(f"{target}: {done['bad']} bad, {done['gone']} gone")
                rates[target].append(done["rate"])
                latency[target].append(done["p99_ms"])
    middle = {target: median(found) for target, found in rates.items()}
    verdict.figures |= {f"{target}_per_s": round(rate) for target, rate in middle.items()}
    verdict.figures |= {f"{t}_p99_ms": rounded(median(found)) for t, found in latency.items()}
    verdict.figures["connections"] = size.connections
    verdict.at_least(
        "over_statements", middle["delivery_off"] / middle["statements"], OVER_STATEMENTS
    )
    verdict.at_least("of_bare", middle["delivery_off"] / middle["bare"], OF_BARE)
    verdict.figures["of_bare_delivery_on"] = rounded(middle["delivery_on"] / middle["bare"])
    return verdict


def load(log: Path, port: int, key: str, size: Size) -> Any:
    """Post contacts from all connections at once for a while."""
    spec = {
        "port": port,
        "connections": size.connections,
        "warm_up": size.warm_up,
        "seconds": size.seconds,
        "expect": 201,
        "requests": [request("POST", "/api/contacts", CONTACT, X_API_Key=key)],
    }
    return answer_of("tests.benchmarks.load", log, spec)
