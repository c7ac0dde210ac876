"""The lines of the dashboards: their lint, and a real Prometheus that answers their queries."""

from __future__ import annotations

import asyncio

from dashboards.builder.collection import FOLDER
from tests.dashboards.documents import RULE_FILES, dashboards, panels
from tests.dashboards.live import run_live
from tests.proof.commands import run, select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.support.requirements import need

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
SECONDS = 180.0


async def live(seed: int) -> Outcome:
    """Scrape a loaded gateway for three minutes on each engine; every query has data."""
    outcome = Outcome()
    runs = [run_live(engine, SECONDS, seed) for engine in ENGINES]
    for engine, told in zip(ENGINES, await asyncio.gather(*runs), strict=True):
        outcome.add(engine, told)
    return outcome


async def lint(seed: int) -> Outcome:
    """Check dashboards and rules: what they say, and that nothing is unknown or unused."""
    outcome = Outcome()
    boards = dashboards().values()
    outcome.figures["panels"] = {board["title"]: len(panels(board)) for board in boards}
    await select(outcome, "tests/dashboards/test_lint.py", at_least=40)
    rules = [str(FOLDER / name) for name in RULE_FILES]
    words = [need("promtool"), "check", "rules", "--lint=all", "--lint-fatal", *rules]
    checked = await run(words, seconds=60)
    outcome.need(checked.status == 0, f"promtool: {checked.last_words}")
    return outcome


LINES: dict[str, Line] = {"dashboards-live": live, "dashboards-lint": lint}
