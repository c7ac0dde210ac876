"""The line of webhook options: changes under load, filters, and what both cost."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.edits import run_deaf, run_edits
from tests.system.filter_costs import run_filter_costs

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
CHANGES = 150


async def options(seed: int) -> Outcome:
    """Edit, pause, rotate and delete webhooks under load (R23); filter events, and price it."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_edits(engine, seed, acts=CHANGES))
        outcome.add(f"control: {engine} workers hear of no change", await run_deaf(engine, seed))
        outcome.add(f"{engine}_filters", await run_filter_costs(engine))
    files = ("outbox/queue/test_filters.py", "gateway/console/test_options.py")
    await select(outcome, *(f"tests/{file}" for file in files), at_least=40)
    return outcome


LINES: dict[str, Line] = {"options": options}
