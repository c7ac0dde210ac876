"""Compare the cost of an event with another tree, both in turn.

python -m tests.benchmarks.quiet_pairs TREE [--runs N] [--seconds S] [--engine E] [--rate R …]

TREE is another checkout with its own `.venv`. A rate of 0 measures the idle node. It prints a JSON
line for each run, and one with the medians and their ratio for each engine and rate.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.children import ROOT
from tests.benchmarks.figures import median, rounded

RUN = Path(__file__).with_name("quiet_run.py")


def run(tree: Path, engine: str, rate: float, seconds: float) -> dict[str, Any]:
    """Run once in `tree`, with its own interpreter."""
    done = subprocess.run(
        [str(tree / ".venv/bin/python"), str(RUN), engine, str(rate), str(seconds)],
        cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, check=True, capture_output=True,
    )  # fmt: skip
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.quiet_pairs")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--engine", choices=("sqlite", "postgres"), action="append")
    parser.add_argument("--rate", type=float, action="append")
    given = parser.parse_args(words)
    for engine in given.engine or ("sqlite", "postgres"):
        for rate in given.rate or (50.0, 200.0, 1000.0, 0.0):
            found: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
            for _ in range(given.runs):
                for name, tree in (("before", given.tree.resolve()), ("now", ROOT)):
                    found[name].append(run(tree, engine, rate, given.seconds))
                    print(json.dumps({"which": name} | found[name][-1]), flush=True)
            medians = {
                name: {
                    what: rounded(median([float(each[what]) for each in runs]))
                    for what in runs[0] if what != "tree"
                }
                for name, runs in found.items()
            }  # fmt: skip
            cost = "cpu_ms" if rate else "core_percent"
            ratio = rounded(medians["now"][cost] / medians["before"][cost])
            line = {"engine": engine, "per_second": rate, "of_before": ratio} | medians
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
