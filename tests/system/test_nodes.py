"""Several nodes on one PostgreSQL, one fault at a time."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support.faults import shows
from tests.system import failover, nodes, nodes_database
from tests.system.standby_wait import WAYS, Way, run_standby_wait

SEED = 80260
TRUSTING = "tests.system.trusting_serve"
UNFENCED = "tests.system.unfenced_serve"

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1_800)]


async def test_two_nodes_share() -> None:
    told = await nodes.run_shares(10, SEED)
    assert told["pass"], told


async def test_nodes_are_killed() -> None:
    told = await nodes.run_node_kills(5, SEED)
    assert told["pass"], told


async def test_nodes_are_killed_while_webhooks_keep_the_order() -> None:
    told = await nodes.run_node_kills(5, SEED, ordered=True)
    assert told["pass"], told


async def test_a_node_stands_still_past_its_lease() -> None:
    told = await nodes.run_long_freeze(SEED)
    assert told["pass"], told


async def test_settling_without_the_claim_is_seen() -> None:
    assert await shows(partial(nodes.run_long_freeze, module=UNFENCED), SEED, "late")


async def test_nodes_stand_still_for_a_while() -> None:
    told = await nodes.run_short_freezes(20, SEED)
    assert told["pass"], told


async def test_a_node_is_cut_off_past_its_lease() -> None:
    told = await nodes.run_black_hole(45, SEED)
    assert told["pass"], told


async def test_nodes_are_cut_off_for_a_while() -> None:
    told = await nodes.run_short_holes(20, SEED)
    assert told["pass"], told


async def test_a_lane_is_locked() -> None:
    told = await nodes_database.run_lane_lock(30, SEED)
    assert told["pass"], told


@pytest.mark.parametrize(("table", "seconds"), [("deliveries", 40), ("events", 15)])
async def test_a_table_is_locked(table: str, seconds: float) -> None:
    told = await nodes_database.run_table_lock(table, seconds, SEED)
    assert told["pass"], told


async def test_the_server_crashes() -> None:
    told = await nodes_database.run_crashes(20, SEED)
    assert told["pass"], told


async def test_backends_are_terminated() -> None:
    told = await nodes_database.run_terminated(20, SEED)
    assert told["pass"], told


async def test_an_event_is_committed_late() -> None:
    told = await nodes_database.run_late_commit(60, SEED)
    assert told["pass"], told


async def test_a_synchronous_standby_takes_over() -> None:
    told = await failover.run_synchronous(SEED)
    assert told["pass"], told


async def test_an_asynchronous_standby_takes_over() -> None:
    told = await failover.run_asynchronous(SEED)
    assert told["pass"], told


@pytest.mark.parametrize("way", WAYS)
async def test_a_wait_for_the_standby_is_ended(way: Way) -> None:
    told = await run_standby_wait(way, 20, SEED)
    assert told["pass"], told


@pytest.mark.parametrize("way", ["cancel", "terminate", "crash"])
async def test_trusting_a_commit_whose_wait_was_ended_loses(way: Way) -> None:
    told = await run_standby_wait(way, 5, SEED, module=TRUSTING)
    assert told["lost"], told
