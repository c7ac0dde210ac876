"""The line of correlation: one search in the log, and the same trace at a collector."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.correlation import run_correlation

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
KILLS = 10
FORGETFUL = "tests.system.forgetful_serve"
TRIES = 3
"""The negative control must fail within this many runs."""


async def correlation(seed: int) -> Outcome:
    """Kill -9 under load, then find each write's event and attempts by its request id alone."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_correlation(KILLS, engine, seed))
    missing = 0
    for tried in range(TRIES):
        broken = await run_correlation(1, "sqlite", seed + tried, module=FORGETFUL)
        missing = len(broken["findings"])
        if missing:
            break
    outcome.figures["control: killed attempts not logged"] = {"findings": missing}
    outcome.need(missing > 0, "the control finds everything: the runs above prove nothing")
    # The receiver of these decodes OTLP with OpenTelemetry's own protobuf messages.
    files = ("test_spans", "test_span_queue", "test_journal", "test_tracing")
    await select(outcome, *(f"tests/gateway/server/{name}.py" for name in files), at_least=30)
    return outcome


LINES: dict[str, Line] = {"correlation": correlation}
