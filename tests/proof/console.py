"""The lines of the console: exact, seen by a browser, and there in time beside a million rows."""

from __future__ import annotations

from tests.benchmarks.console_charts import console_charts
from tests.benchmarks.console_history import console_history
from tests.benchmarks.sizes import FULL
from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome


async def charts(seed: int) -> Outcome:
    """Compare figures with the log, read the charts in a browser, and time a page by a million."""
    outcome = Outcome()
    exact = (
        "tests/outbox/queue/state/test_figures.py",
        "tests/gateway/console/overview/test_overview.py",
    )
    await select(outcome, *exact, "tests/gateway/console/frame/test_charts.py", at_least=50)
    await select(outcome, "tests/browser/test_charts.py", at_least=5)
    timed = await console_charts(FULL)
    outcome.figures |= timed.figures
    outcome.reasons += timed.reasons
    return outcome


async def delivery(seed: int) -> Outcome:
    """Compare lists and searches with filters in memory, read the pages in a browser, time them."""
    outcome = Outcome()
    exact = (
        "tests/outbox/queue/log/test_delivery_search.py",
        "tests/outbox/events/test_history.py",
    )
    pages = ("history", "timeline", "guide", "beside")
    named = (f"tests/gateway/console/test_{page}.py" for page in pages)
    await select(outcome, *exact, *named, at_least=70)
    await select(outcome, "tests/browser/test_history.py", at_least=4)
    timed = await console_history(FULL)
    outcome.figures |= timed.figures
    outcome.reasons += timed.reasons
    return outcome


LINES: dict[str, Line] = {"console-charts": charts, "console-delivery": delivery}
