"""The lines of the engine: damage, turns, locks and plans, beside ordinary traffic."""

from __future__ import annotations

from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.support.versions import versions
from tests.system.collisions import run_collisions
from tests.system.damage import run_damage
from tests.system.fates import run_commit_race
from tests.system.plans import Size, run_plans
from tests.system.turns import run_starvation

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
TURNS = ((20, 256, 5), (20, 8, 5), (2_000, 256, 3), (2_000, 16, 3))
"""Lanes with a backlog, slots of the worker, and the number of turns requested beside them."""
COLLISION_SECONDS = 300.0
COMMITS = 20_000


async def commit_race(seed: int) -> Outcome:
    """Race 20,000 COMMITs with queries of their outcome: none is wrong."""
    outcome = Outcome()
    outcome.add("postgres", await run_commit_race(COMMITS, seed))
    return outcome


async def damaged_rows(seed: int) -> Outcome:
    """Deliver a damaged row of each kind beside traffic: dead with a reason, nothing repeated."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_damage(engine, seed))
    return outcome


async def starvation(seed: int) -> Outcome:
    """Fill 20 and 2,000 lanes with backlogs: a first event and a retry get their turn in 2 s."""
    outcome = Outcome()
    for engine in ENGINES:
        for lanes, slots, rounds in TURNS:
            told = await run_starvation(engine, lanes, slots, rounds=rounds)
            outcome.add(f"{engine}_{lanes}_lanes_{slots}_slots", told)
    return outcome


async def deadlocks(seed: int) -> Outcome:
    """Run three workers, failing receivers and busy owners: the server counts no deadlock."""
    outcome = Outcome()
    outcome.add("postgres", await run_collisions(COLLISION_SECONDS, seed))
    return outcome


async def plans(seed: int) -> Outcome:
    """Drain 100,000 ready rows over a million kept, with statistics from an empty queue.

    On the oldest and the newest PostgreSQL of this machine.
    """
    outcome = Outcome()
    found = versions()
    for version in (min(found), max(found)):
        outcome.add(f"postgres_{version}", await run_plans(Size(), version))
    return outcome


LINES: dict[str, Line] = {
    "commit-race": commit_race,
    "damaged-rows": damaged_rows,
    "starvation": starvation,
    "deadlocks": deadlocks,
    "plans": plans,
}
