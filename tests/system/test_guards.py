"""Other users during attacks: served with the guards on, blocked or refused without them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.engines import Engine
from tests.system.attacks import bodies, searches, sign_in
from tests.system.attacks.attack import Attack, run_attack

SEARCHES = {attack.name: attack for attack in searches.ATTACKS}
SIGN_INS = {attack.name: attack for attack in sign_in.ATTACKS}


async def others(attack: Attack, engine: Engine, module: str = "gateway") -> list[str]:
    """Return the effects of an attack on others; the proof checks the bars of its own cost."""
    record: dict[str, Any] = await run_attack(attack, engine, module=module)
    return [finding for finding in record["findings"] if finding.startswith(("somebody", "an h"))]


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", ["search flood", "abandoned searches"])
async def test_searches_of_one_owner_hold_up_another_only_without_turns(
    name: str, engine: Engine
) -> None:
    assert await others(SEARCHES[name], engine) == []
    assert await others(SEARCHES[name], engine, "tests.system.crowding_serve") != []


@pytest.mark.faults
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["one account", "many accounts", "many networks"])
async def test_a_flood_of_sign_ins_turns_others_away_only_without_turns(name: str) -> None:
    assert await others(SIGN_INS[name], "sqlite") == []
    assert await others(SIGN_INS[name], "sqlite", "tests.system.open_serve") != []


@pytest.mark.faults
@pytest.mark.timeout(600)
async def test_bodies_of_very_many_values_cost_little_only_with_a_bound() -> None:
    attack = bodies.ATTACKS[0]
    off = replace(attack, settings={"UNGUARDED": "values"})

    def cost(record: dict[str, Any]) -> bool:
        return any("processor time" in finding for finding in record["findings"])

    assert not cost(await run_attack(attack))
    assert cost(await run_attack(off, module="tests.system.unguarded_serve"))
