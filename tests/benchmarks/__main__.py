"""`make bench`: run benchmarks, print one JSON line each; exit 1 when a bar is missed.

python -m tests.benchmarks [--quick | --keep] [NAME …]

Rates are compared with tests/benchmarks/baseline.json; `--keep` makes this run the baseline.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from tests.benchmarks.baseline import compare, keep, kept
from tests.benchmarks.beside import beside
from tests.benchmarks.children import ChildFailed
from tests.benchmarks.conditions import conditions
from tests.benchmarks.figures import FULL, QUICK, Size, Verdict
from tests.benchmarks.growth import growth, growth_postgres
from tests.benchmarks.hanging import hanging
from tests.benchmarks.send_path import send_path
from tests.benchmarks.single_paths import read_path, write_path
from tests.benchmarks.whole_runs import end_to_end, end_to_end_postgres, quiet_day

Benchmark = Callable[[Size], Coroutine[Any, Any, Verdict]]
BENCHMARKS: dict[str, Benchmark] = {
    one.__name__: one
    for one in (
        write_path, read_path, send_path, end_to_end, end_to_end_postgres, quiet_day,
        growth, growth_postgres, hanging, beside,
    )
}  # fmt: skip


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="only see that everything runs")
    parser.add_argument("--keep", action="store_true", help="make the rates the baseline")
    given = parser.parse_args(words)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}")
    held = True
    for name in given.names or BENCHMARKS:
        place = conditions()
        verdict = asyncio.run(_run(name, QUICK if given.quick else FULL))
        if given.keep and not verdict.broken:
            keep(verdict, place)
        elif not given.quick:
            compare(verdict, place, kept())
        print(verdict.line(), flush=True)
        held = held and (verdict.holds or (given.quick and not verdict.broken))
    return 0 if held else 1


async def _run(name: str, size: Size) -> Verdict:
    try:
        return await BENCHMARKS[name](size)
    except (ChildFailed, OSError, RuntimeError) as error:
        return Verdict(name, broken=[f"{type(error).__name__}: {error}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
