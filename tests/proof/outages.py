"""A receiver that is down for ten minutes: probes, its backlog, and everybody else (R9)."""

from __future__ import annotations

from tests.proof.outcome import Line, Outcome
from tests.system.outages import run_outage

DOWN_SECONDS = 600.0
QUIET_SECONDS = 120.0
ENGINES_SECONDS = 60.0


async def circuit(seed: int) -> Outcome:
    """Let a receiver fail for ten minutes at 100 events/s; without circuits it must be stormed."""
    outcome = Outcome()
    outcome.add(
        "sqlite", await run_outage("sqlite", seed, seconds=DOWN_SECONDS, quiet=QUIET_SECONDS)
    )
    outcome.add(
        "postgres",
        await run_outage("postgres", seed, seconds=ENGINES_SECONDS, quiet=ENGINES_SECONDS),
    )
    control = await run_outage(
        "sqlite", seed, seconds=10, quiet=5, schedule="1,1,1,1,1,1,1,1,1", ratio=0.0,
        module="tests.system.undaunted_serve",
    )  # fmt: skip
    outcome.figures["control: no circuit"] = control
    outcome.need(
        any("no probes" in finding for finding in control["findings"]),
        "the control shows no storm: the runs above prove nothing",
    )
    return outcome


LINES: dict[str, Line] = {"circuit": circuit}
"""By the name of the line."""
