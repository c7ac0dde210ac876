"""The lines of the house: its answers as recorded, its floors, and a resource that is added."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

from tests.architecture.test_circles import circles_in, graph_of
from tests.architecture.tree import PACKAGES, ROOT, modules
from tests.proof.commands import run, select
from tests.proof.outcome import Line, Outcome

RECORDED = ROOT / "tests" / "snapshots" / "calls.jsonl"
CALLS = 300
MEDIAN, LONGEST = 110, 300
CONTRACTS = re.compile(r"Contracts: (\d+) kept, (\d+) broken")


async def corpus(seed: int) -> Outcome:
    """Every recorded REST call and the OpenAPI snapshot, byte for byte."""
    outcome = Outcome()
    calls = len(RECORDED.read_text().splitlines())
    outcome.figures["calls"] = calls
    outcome.need(calls >= CALLS, f"{calls} calls are recorded, wanted {CALLS}")
    await select(
        outcome, "tests/gateway/rest/corpus", "tests/gateway/rest/test_openapi.py",
        "-k", "recorded or snapshot", at_least=3,
    )  # fmt: skip
    return outcome


async def rooms(seed: int) -> Outcome:
    """Each import contract, no circle of imports, and the sizes of modules."""
    outcome = Outcome()
    lint = Path(sys.executable).with_name("lint-imports")
    ended = await run([str(lint), "--no-cache"], seconds=120)
    found = CONTRACTS.search(ended.text)
    kept, broken = (int(found[1]), int(found[2])) if found else (0, 0)
    outcome.need(ended.status == 0 and kept > 0 and not broken, ended.last_words)
    circles = [circle for package in PACKAGES for circle in circles_in(graph_of(package))]
    outcome.need(not circles, f"circles of imports: {circles}")
    sizes = {
        path.as_posix(): len((ROOT / path).read_text().splitlines())
        for path in modules()
        if path.name != "__init__.py"
    }
    longest = max(sizes, key=lambda path: sizes[path])
    outcome.figures |= {
        "contracts": kept,
        "modules": len(sizes),
        "median_lines": median(sizes.values()),
        "longest": f"{longest}: {sizes[longest]}",
    }
    outcome.need(median(sizes.values()) <= MEDIAN, f"the median is past {MEDIAN} lines")
    outcome.need(sizes[longest] <= LONGEST, f"{longest} is past {LONGEST} lines")
    return outcome


async def suppliers(seed: int) -> Outcome:
    """A plain resource added to a copy of the product touches three places."""
    outcome = Outcome()
    await select(outcome, "tests/system/test_suppliers.py", at_least=1)
    return outcome


LINES: dict[str, Line] = {"corpus": corpus, "rooms": rooms, "suppliers": suppliers}
