"""The line of recover jobs: 50,000 deliveries, killed twice on the way, each replayed once."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.recovers import run_recover

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
COUNT = 50_000
CONTROL = 2_000
HASTY = "tests.system.hasty_jobs_serve"
TRIES = 3


async def recover(seed: int) -> Outcome:
    """Recover on both engines under writes and kills; a job that moves on first must lose some."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_recover(COUNT, engine, seed))
        await _goes_red(outcome, engine, seed)
    jobs = (
        "tests/outbox/queue/replays/test_jobs.py",
        "tests/gateway/console/deliveries/test_recoveries.py",
    )
    await select(outcome, *jobs, "tests/gateway/console/deliveries/test_steering.py", at_least=100)
    return outcome


async def _goes_red(outcome: Outcome, engine: Engine, seed: int) -> None:
    for tried in range(TRIES):
        told = await run_recover(CONTROL, engine, seed + tried, within=1.0, module=HASTY)
        lost = told["lost"]
        outcome.figures[f"control: {engine} moving on first"] = {"lost": lost, "tries": tried + 1}
        if lost:
            return
    outcome.reasons.append(f"{engine}: moving on first loses nothing: the bar proves nothing")


async def wrong_key(seed: int) -> Outcome:
    """Start, restore, copy and prepare with another key file, and lose a key: nothing ends dead."""
    outcome = Outcome()
    files = ("tests/gateway/cli/test_wrong_key.py", "tests/outbox/worker/test_unreadable.py")
    await select(outcome, *files, at_least=40)
    await select(outcome, "tests/deploy/test_two_nodes.py", "-k", "second_key", at_least=1)
    return outcome


LINES: dict[str, Line] = {"recover": recover, "wrong-key": wrong_key}
