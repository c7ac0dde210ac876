"""`make proof`: every promise of the project, one JSON line each; exit 1 unless all hold.

python -m tests.proof [--seed N] [LINE …]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import random
import sys
import time

import pytest
import structlog

from tests.proof.lines import LINES
from tests.proof.outcome import Line, Outcome, told

SEEDS = 1_000_000


def main(words: list[str]) -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("lines", nargs="*", metavar="LINE", help=", ".join(LINES))
    parser.add_argument("--seed", type=int, help="repeat a run that printed this seed")
    given = parser.parse_args(words)
    unknown = [name for name in given.lines if name not in LINES]
    if unknown:
        parser.error(f"there is no line {', '.join(unknown)}; there are {', '.join(LINES)}")
    seed = random.SystemRandom().randrange(SEEDS) if given.seed is None else given.seed
    # Engines that run in this process log here; other processes have their own log files.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    held = True
    for name in given.lines or LINES:
        began = time.monotonic()
        # Runs with records of their own write them beside the proof's.
        with contextlib.redirect_stdout(sys.stderr):
            outcome = asyncio.run(_run(LINES[name], seed))
        print(told(name, outcome, seed, time.monotonic() - began), flush=True)
        held = held and not outcome.reasons
    return 0 if held else 1


async def _run(line: Line, seed: int) -> Outcome:
    try:
        return await line(seed)
    # A line fails when it raises, or skips because a tool is missing.
    except (Exception, pytest.skip.Exception) as error:  # noqa: BLE001
        return Outcome(reasons=[f"{type(error).__name__}: {error}"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
