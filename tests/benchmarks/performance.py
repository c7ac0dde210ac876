"""`make performance`: measure what docs/performance.md tells, and write its figures and its plot.

python -m tests.benchmarks.performance [--draw] [--quick] [NAME …]

Each benchmark's figures go into docs/performance.json when it ends, with the circumstances under
which they were measured. `--draw` measures nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.benchmarks.children import ROOT
from tests.benchmarks.conditions import conditions
from tests.benchmarks.growth_plot import draw
from tests.benchmarks.performance_tables import SECTIONS, filled
from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.sizes import FULL, QUICK

DATA = ROOT / "docs" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"
PLOT = ROOT / "docs" / "pictures" / "growth.svg"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.performance")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SECTIONS))
    parser.add_argument("--draw", action="store_true", help="only write tables and plot again")
    parser.add_argument("--quick", action="store_true", help="measure little, and keep nothing")
    parser.add_argument("--runs", type=int, help="the number of runs, if not five")
    parser.add_argument("--most-kept", type=int, help="leave out points with more kept rows")
    given = parser.parse_args(words)
    unknown = [name for name in given.names if name not in SECTIONS]
    if unknown:
        parser.error(f"the page has no benchmark {', '.join(unknown)}")
    size = QUICK if given.quick else FULL
    if given.runs:
        size = replace(size, runs=given.runs)
    if given.most_kept is not None:
        kept = tuple(rows for rows in size.grown_kept if rows <= given.most_kept)
        size = replace(size, grown_kept=kept)
    for name in [] if given.draw else given.names or SECTIONS:
        measured: dict[str, Any] = {"conditions": conditions()}
        verdict = asyncio.run(BENCHMARKS[name](size))
        print(verdict.line(), flush=True)
        if verdict.broken:
            return 1
        measured |= {"figures": verdict.figures, "missed": verdict.missed}
        if not given.quick:
            write(read() | {name: measured})
    if not given.quick:
        write(read())
    return 0


def read() -> dict[str, Any]:
    """Return what was measured, by benchmark."""
    found: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {}
    return found


def write(measured: dict[str, Any]) -> None:
    """Write data, page and plot."""
    ordered = {name: measured[name] for name in SECTIONS if name in measured}
    DATA.write_text(json.dumps(ordered, indent=1) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), ordered))
    draw(grown(ordered), PLOT)


def grown(measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of growth on both engines."""
    names = [name for name in measured if name.startswith("growth")]
    return {key: value for name in names for key, value in measured[name]["figures"].items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
