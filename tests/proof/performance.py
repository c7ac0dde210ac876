"""The lines of performance: against bare baselines, against the commit before; growth."""

from __future__ import annotations

from tests.benchmarks.figures import Verdict
from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.sizes import FULL
from tests.proof.outcome import Line, Outcome


async def benchmarks(seed: int) -> Outcome:
    """Check the load generator; measure the time from an idle commit to the request."""
    return await measured("load_generator", "idle_commit")


async def end_to_end(seed: int) -> Outcome:
    """Write and deliver at once on SQLite: 1.6 times the commit before, 0.6 of its CPU."""
    return await measured("end_to_end")


async def end_to_end_postgres(seed: int) -> Outcome:
    """The same with two processes on PostgreSQL: 2.0 times the commit before with its one."""
    return await measured("end_to_end_postgres")


async def fast_paths(seed: int) -> Outcome:
    """Compare writes, reads, pages of every resource and sends with bare baselines."""
    return await measured("write_path", "read_path", "pages", "send_path")


async def growth(seed: int) -> Outcome:
    """Grow webhooks per event to 50, webhooks to 10,000 and kept rows to ten million."""
    return await measured("growth", "growth_postgres")


async def measured(*names: str) -> Outcome:
    """Run benchmarks; each missed bar is a reason."""
    outcome = Outcome()
    for name in names:
        verdict: Verdict = await BENCHMARKS[name](FULL)
        outcome.figures[name] = verdict.figures
        outcome.reasons += [f"{name}: {reason}" for reason in verdict.reasons]
    return outcome


LINES: dict[str, Line] = {
    "benchmarks": benchmarks,
    "end-to-end": end_to_end,
    "end-to-end-postgres": end_to_end_postgres,
    "fast-paths": fast_paths,
    "growth": growth,
}
