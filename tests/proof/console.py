"""The line of the console's charts: exact, seen by a browser, and there in 200 ms."""

from __future__ import annotations

from tests.benchmarks.console_charts import console_charts
from tests.benchmarks.sizes import FULL
from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome


async def charts(seed: int) -> Outcome:
    """Compare figures with the log, read the charts in a browser, and time a page by a million."""
    outcome = Outcome()
    exact = ("tests/outbox/queue/test_figures.py", "tests/gateway/console/test_overview.py")
    await select(outcome, *exact, "tests/gateway/console/test_charts.py", at_least=50)
    await select(outcome, "tests/browser/test_charts.py", at_least=5)
    timed = await console_charts(FULL)
    outcome.figures |= timed.figures
    outcome.reasons += timed.reasons
    return outcome


LINES: dict[str, Line] = {"console-charts": charts}
