"""The lines of several nodes on PostgreSQL: their faults, a standby's, and a failover."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.system.failover import run_asynchronous, run_synchronous
from tests.system.nodes import (
    run_black_hole,
    run_long_freeze,
    run_node_kills,
    run_shares,
    run_short_freezes,
    run_short_holes,
)
from tests.system.nodes_database import (
    run_crashes,
    run_lane_lock,
    run_late_commit,
    run_table_lock,
    run_terminated,
)
from tests.system.processes import run_process_kills
from tests.system.standby_wait import WAYS, run_standby_wait

KILLS = 5
PROCESS_KILLS = 10
SHORT = 20
CRASHES = 20
WAITS = 20
TRIES = 3
HOLE_SECONDS = 45.0
LANE_SECONDS = 30.0
LEASE_AND_MORE_SECONDS = 40.0
TABLE_SECONDS = 15.0
LATE_SECONDS = 60.0
SHARE_SECONDS = 20.0
TRUSTING = "tests.system.trusting_serve"
BROKEN = "tests.system.broken_serve"
UNFENCED = "tests.system.unfenced_serve"


async def four_nodes(seed: int) -> Outcome:
    """Run each fault of a node or of the database, and the ledger after it.

    Recording results without a check of the claim must fail.
    """
    outcome = Outcome()
    for told in (
        await run_shares(SHARE_SECONDS, seed),
        await run_late_commit(LATE_SECONDS, seed),
        await run_node_kills(KILLS, seed),
        await run_long_freeze(seed),
        await run_short_freezes(SHORT, seed),
        await run_black_hole(HOLE_SECONDS, seed),
        await run_short_holes(SHORT, seed),
        await run_lane_lock(LANE_SECONDS, seed),
        await run_table_lock("deliveries", LEASE_AND_MORE_SECONDS, seed),
        await run_table_lock("events", TABLE_SECONDS, seed),
        await run_crashes(CRASHES, seed),
        await run_terminated(CRASHES, seed),
    ):
        _add(outcome, told)
    for tried in range(TRIES):
        late = (await run_long_freeze(seed + tried, module=UNFENCED))["late"]
        outcome.figures["control: settling without the claim"] = {"late": late, "tries": tried + 1}
        if late:
            return outcome
    outcome.reasons.append("settling without the claim changes nothing: the freeze proves nothing")
    return outcome


async def processes(seed: int) -> Outcome:
    """Kill -9 one of two processes of a node under load; settling before sending must fail."""
    outcome = Outcome()
    _add(outcome, await run_process_kills(PROCESS_KILLS, seed))
    await select(
        outcome, "tests/gateway/cli/test_processes.py", "-m", "slow or not slow", at_least=11
    )
    for tried in range(TRIES):
        lost = (await run_process_kills(3, seed + tried, module=BROKEN))["lost"]
        outcome.figures["control: settling before sending"] = {"lost": lost, "tries": tried + 1}
        if lost:
            return outcome
    outcome.reasons.append("settling before sending loses nothing: the kills prove nothing")
    return outcome


async def failover(seed: int) -> Outcome:
    """Kill the primary and promote a standby, with and without a loss of history."""
    outcome = Outcome()
    for told in (await run_synchronous(seed), await run_asynchronous(seed)):
        _add(outcome, told)
    return outcome


async def standby_wait(seed: int) -> Outcome:
    """End a COMMIT's wait for its standby in each way; trusting that COMMIT must fail."""
    outcome = Outcome()
    for way in WAYS:
        _add(outcome, await run_standby_wait(way, WAITS, seed))
    for tried in range(TRIES):
        lost = (await run_standby_wait("cancel", WAITS, seed + tried, module=TRUSTING))["lost"]
        outcome.figures["control: trusting the COMMIT"] = {"lost": lost, "tries": tried + 1}
        if lost:
            return outcome
    outcome.reasons.append("trusting the COMMIT loses nothing: the runs above prove nothing")
    return outcome


def _add(outcome: Outcome, told: Mapping[str, Any]) -> None:
    outcome.add(str(told["fault"]), told)


LINES: dict[str, Line] = {
    "four-nodes": four_nodes,
    "processes": processes,
    "failover": failover,
    "standby-wait": standby_wait,
}
