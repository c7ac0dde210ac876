"""The lines of the faults: machine, receivers, names and files fail, and nothing is lost.

docs/reliability.md has the whole list; the other lines of the proof show the rest of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.proof.performance import measured
from tests.support.engines import Engine
from tests.system.clocks import run_clock_jumps
from tests.system.counters import run_counters
from tests.system.crowds import run_crowd
from tests.system.flushes import run_failed_flushes, run_slow_flush
from tests.system.hostility import run_hostility
from tests.system.lookups import run_lookup_faults
from tests.system.memory import run_memory_ends
from tests.system.rot import run_rot
from tests.system.rotations import run_rotations
from tests.system.shortages import run_few_descriptors
from tests.system.steps import run_steps
from tests.system.stops import run_shutdown
from tests.system.writers import run_locked, run_writers

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
STEPS = 60
FLUSHES = 8
ROT = 150
ENDS = 5
HOSTILE_SECONDS = 300.0
ROWS = 1_000_000
WRITES = 500
TRIES = 3
PAGE = "tests/docs/test_reliability.py"


async def faults(seed: int) -> Outcome:
    """Run each fault of the machine and of receivers; each broken rule must be seen."""
    outcome = Outcome()
    await select(outcome, PAGE, "-m", "faults or not faults", at_least=3)
    for engine in ENGINES:
        for told in (
            await run_steps(STEPS, engine, seed),
            await run_failed_flushes(FLUSHES, engine, seed),
            await run_clock_jumps(engine, seed),
            await run_hostility(engine, seed, seconds=HOSTILE_SECONDS),
            await run_shutdown(engine, seed),
            await run_shutdown(engine, seed, twice=True),
            await run_lookup_faults(engine, seed),
            await run_few_descriptors(engine, seed),
            await run_memory_ends(ENDS, engine, seed),
        ):
            _add(outcome, told)
    _add(outcome, await run_slow_flush(seed))
    _add(outcome, await run_writers(seed))
    _add(outcome, await run_rot(ROT, seed))
    await _controls(outcome, seed)
    return outcome


async def _controls(outcome: Outcome, seed: int) -> None:
    """Run with a rule broken on purpose; its figure must show that."""
    for tried in range(TRIES):
        told = await run_failed_flushes(
            3, "sqlite", seed + tried, module="tests.system.hopeful_serve"
        )
        outcome.figures["control: forgetting a failed flush"] = {"lost": told["lost"]}
        if told["lost"]:
            break
    else:
        outcome.reasons.append("forgetting a failed flush loses nothing: the runs prove nothing")
    for tried in range(TRIES):
        thirsty = await run_few_descriptors(
            "sqlite", seed + tried, module="tests.system.thirsty_serve"
        )
        outcome.figures["control: taking all descriptors"] = {"lost": thirsty["lost"]}
        if thirsty["lost"]:
            break
    else:
        outcome.reasons.append("taking all descriptors loses nothing: the runs prove nothing")
    locked = await run_locked(seed)
    outcome.figures["control: a stranger holds the lock"] = {"refused": locked["refused"]}
    outcome.need(bool(locked["refused"]), "a lock held for long is seen by no client")
    walled = await run_clock_jumps("sqlite", seed, module="tests.system.walled_serve", patience=4.0)
    outcome.figures["control: due by the wall clock"] = walled["findings"]
    outcome.need(not walled["pass"], "due by the wall clock, nothing is early or late")


async def rotation(seed: int) -> Outcome:
    """Rotate secrets under load: outside verifiers of each kind of receiver refuse nothing."""
    outcome = Outcome()
    for engine in ENGINES:
        _add(outcome, await run_rotations(engine, seed))
    files = ("tests/outbox/webhooks/test_rotation.py", "tests/system/test_rotations.py")
    await select(outcome, *files, "-m", "slow or not slow", at_least=10)
    return outcome


async def parked_million(seed: int) -> Outcome:
    """Drain, start and write beside a million parked and a million scheduled rows."""
    outcome = await measured("parked")
    for engine in ENGINES:
        _add(outcome, await run_crowd(engine, seed, rows=ROWS))
    return outcome


async def counters(seed: int) -> Outcome:
    """Compare the attempts counter, the rows of the log and the receivers' count."""
    outcome = Outcome()
    for engine in ENGINES:
        _add(outcome, await run_counters(engine, seed, writes=WRITES))
    return outcome


def _add(outcome: Outcome, told: Mapping[str, Any]) -> None:
    outcome.add(str(told["fault"]), told)


LINES: dict[str, Line] = {
    "faults": faults,
    "rotation": rotation,
    "parked-million": parked_million,
    "counters": counters,
}
