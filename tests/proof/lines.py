"""The lines of the proof: each promise of the project by its name in `make proof`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from tests.proof import (
    attacks,
    chains,
    console,
    correlation,
    crm,
    dashboards,
    data,
    edges,
    faults,
    forgeries,
    graphql_door,
    installing,
    nodes,
    options,
    outages,
    performance,
    purchases,
    receivers_seen,
    recovery,
    rooms,
    rules,
    sequences,
    simulated,
    statements,
    storefront,
)
from tests.proof import engine as engine_lines
from tests.proof.commands import run, select
from tests.proof.exposition import exposition
from tests.proof.fresh_clone import first_demo, fresh_clone
from tests.proof.outcome import Line, Outcome
from tests.proof.performance import measured
from tests.support.engines import Engine
from tests.system.commits import run_commit_cuts, run_database_crashes
from tests.system.kills import run_kills
from tests.system.power import run_power_cuts
from tests.system.space import run_batch_failures

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
KILLS = 20
POWER_CUTS = 5
COMMITS = 20
TRIES = 3
"""A negative control must fail within this many runs."""


async def third_party_signatures(seed: int) -> Outcome:
    """Verify signatures with gidgethub, @octokit/webhooks-methods and standardwebhooks."""
    outcome = Outcome()
    await select(
        outcome, "tests/outbox", "-k", "gidgethub or octokit or standardwebhooks", at_least=3
    )
    return outcome


async def kill_ledger(seed: int) -> Outcome:
    """Kill -9 under load on both engines; recording results before sending must fail."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_kills(KILLS, engine, seed))
        settling_first = partial(run_kills, 1, engine, module="tests.system.broken_serve")
        await _goes_red(outcome, f"{engine} settling before sending", settling_first, seed)
    return outcome


async def power_cut(seed: int) -> Outcome:
    """Cut the disk's power under load on both engines; synchronous=normal must fail."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_power_cuts(POWER_CUTS, engine, seed))
        not_durable = partial(run_power_cuts, 1, engine, synchronous="normal")
        await _goes_red(outcome, f"{engine} synchronous=normal", not_durable, seed)
    return outcome


async def commit_kill(seed: int) -> Outcome:
    """Stop PostgreSQL during COMMIT; guessing the outcome must fail."""
    outcome = Outcome()
    outcome.add("connections_cut", await run_commit_cuts(COMMITS, seed))
    outcome.add("server_killed", await run_database_crashes(COMMITS, seed))
    aborted = partial(run_commit_cuts, 4, assume="aborted")
    await _goes_red(outcome, "guessing aborted", aborted, seed, "unexpected")
    committed = partial(run_commit_cuts, 4, assume="committed")
    await _goes_red(outcome, "guessing committed", committed, seed)
    return outcome


async def _goes_red(
    outcome: Outcome,
    control: str,
    run: Callable[..., Awaitable[Mapping[str, Any]]],
    seed: int,
    figure: str = "lost",
) -> None:
    """Run with a rule broken on purpose; `figure` must show it in one of a few tries."""
    for tried in range(TRIES):
        found = int((await run(seed=seed + tried))[figure])
        outcome.figures[f"control: {control}"] = {figure: found, "tries": tried + 1}
        if found:
            return
    outcome.reasons.append(f"{control} shows no {figure}: the run above proves nothing")


async def batch_failure(seed: int) -> Outcome:
    """Let one write of three find no space; the other two are committed."""
    outcome = Outcome()
    outcome.add("sqlite", await run_batch_failures(20, seed))
    return outcome


async def hanging_receivers(seed: int) -> Outcome:
    """Let many of 10,000 webhooks hang, or one owner respond late: the effect on the others."""
    return await measured("hanging")


async def slow_receivers(seed: int) -> Outcome:
    """Send 20 events a second to a receiver of two seconds, beside 6,000 webhooks that hang."""
    return await measured("slow_receivers")


async def duties_and_gauges(seed: int) -> Outcome:
    """One run per period on four nodes, takeover within 35 s; gauges beside a million rows."""
    outcome = await measured("gauges")
    files = (
        "outbox/database/test_leadership.py",
        "outbox/worker/test_duties.py",
        "gateway/server/test_upkeep.py",
    )
    every = ("-m", "faults or not faults")
    await select(outcome, *(f"tests/{file}" for file in files), *every, at_least=25)
    return outcome


async def browser(seed: int) -> Outcome:
    """Create a webhook in a browser, write, and see its delivery on the page."""
    outcome = Outcome()
    await select(outcome, "tests/browser", "-k", "first_account", at_least=1)
    return outcome


async def demo_shop(seed: int) -> Outcome:
    """Buy in the demo's shop in a browser, on one origin and across two, and see its events."""
    outcome = Outcome()
    await select(outcome, "tests/browser/test_shop.py", at_least=6)
    await select(outcome, "tests/system/test_demo.py", "-k", "purchase", at_least=1)
    return outcome


async def lint(seed: int) -> Outcome:
    """Run `make check`, and compare the README's map with the tree."""
    outcome = Outcome()
    check = await run(["make", "check"], seconds=600)
    outcome.figures["check_status"] = check.status
    outcome.need(check.status == 0, f"make check: {check.last_words}")
    await select(outcome, "tests/architecture", at_least=10)
    return outcome


LINES: dict[str, Line] = {
    "third-party-signatures": third_party_signatures,
    "kill-ledger": kill_ledger,
    "power-cut": power_cut,
    "batch-failure": batch_failure,
    "commit-kill": commit_kill,
    **performance.LINES,
    "hanging-receivers": hanging_receivers,
    "slow-receivers": slow_receivers,
    "duties-and-gauges": duties_and_gauges,
    "metrics": exposition,
    **correlation.LINES,
    **engine_lines.LINES,
    **faults.LINES,
    **console.LINES,
    **crm.LINES,
    **nodes.LINES,
    **options.LINES,
    **sequences.LINES,
    **outages.LINES,
    **edges.LINES,
    **rooms.LINES,
    **dashboards.LINES,
    **rules.LINES,
    **simulated.LINES,
    **statements.LINES,
    **purchases.LINES,
    **receivers_seen.LINES,
    **recovery.LINES,
    **forgeries.LINES,
    **attacks.LINES,
    **graphql_door.LINES,
    **storefront.LINES,
    **data.LINES,
    **chains.LINES,
    **installing.LINES,
    "browser": browser,
    "demo-shop": demo_shop,
    "lint": lint,
    "first-demo": first_demo,
    "fresh-clone": fresh_clone,
}
