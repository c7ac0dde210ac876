"""The line of ordered webhooks: the order of each record under faults, and what it costs."""

from __future__ import annotations

from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.sequence_cost import run_cost
from tests.system.sequences import run_one_node, run_two_nodes

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
KILLS = 3
TRIES = 3
HASTY = "tests.system.hasty_serve"


async def ordered(seed: int) -> Outcome:
    """Write to 200 records while receivers refuse and nodes are killed: each keeps its order.

    Sending without a look at the head of a record must fail.
    """
    outcome = Outcome()
    outcome.add("2 nodes", await run_two_nodes(KILLS, seed))
    outcome.add("1 node", await run_one_node("sqlite", KILLS, seed))
    for engine in ENGINES:
        outcome.add(f"cost, {engine}", await run_cost(engine))
    for tried in range(TRIES):
        told = await run_two_nodes(0, seed + tried, records=40, module=HASTY)
        disorder = told["disorder"]
        control = {"disorder": disorder, "tries": tried + 1}
        outcome.figures["control: no look at the head"] = control
        if disorder:
            return outcome
    outcome.reasons.append("without a look at the head nothing is out of order")
    return outcome


LINES: dict[str, Line] = {"ordered": ordered}
