"""The engine in virtual time, and the product on a store that fails (R28, R29)."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.proof.commands import run
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.flaky import run_flaky

WORLDS = 2_000
WRITES = 10_000
ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
TESTS = (
    "tests/outbox/worker/test_simulation.py",
    "tests/outbox/worker/test_steered_simulation.py",
)


async def simulation(seed: int) -> Outcome:
    """Run the engine in 2,000 simulated worlds; each broken rule must be found."""
    outcome = Outcome()
    environment = {"SIMULATION_EXAMPLES": str(WORLDS), "SIMULATION_SEED": str(seed)}
    words = [
        sys.executable, "-m", "pytest", "-q", "-s", *TESTS,
        "--timeout", "1800", "-m", "faults or slow",
    ]  # fmt: skip
    done = await run(words, seconds=1_800, environment=environment)
    records: list[dict[str, Any]] = [
        json.loads(line[line.index("{") :])
        for line in done.text.splitlines()
        if '"R28 simulation"' in line
    ]
    outcome.need(done.status == 0, f"the tests fail: {done.last_words}")
    most = max(records, key=lambda record: int(record["examples"]), default={})
    outcome.figures["simulation"] = most
    outcome.need(int(most.get("examples", 0)) >= WORLDS, f"fewer than {WORLDS} worlds")
    return outcome


async def failing_store(seed: int) -> Outcome:
    """Fail one call of the store in a hundred under load; forgotten results must be seen."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_flaky(engine, seed, writes=WRITES))
    control = await run_flaky("sqlite", seed, writes=400, share=0.1, forgets=True)
    outcome.figures["control: results forgotten"] = control
    outcome.need(
        bool(control["lost"] or control["unexpected"]),
        "the control shows nothing: the runs above prove nothing",
    )
    return outcome


LINES: dict[str, Line] = {"simulation": simulation, "failing-store": failing_store}
"""By the name of the line."""
