"""Each attack stays within its bars, and exceeds them with its guard off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.engines import Engine
from tests.system.attacks import bodies, connections, deletes, forms, memory, searches, sign_in
from tests.system.attacks.attack import Attack, run_attack

ATTACKS: tuple[Attack, ...] = (
    *forms.ATTACKS,
    *bodies.ATTACKS,
    *memory.ATTACKS,
    *connections.ATTACKS,
    *searches.ATTACKS,
    *deletes.ATTACKS,
    *sign_in.ATTACKS,
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
ON_BOTH = (*searches.ATTACKS, *deletes.ATTACKS)
"""Attacks on code that differs between the engines."""
RUNS: list[tuple[str, Engine]] = [
    *((attack.name, "sqlite") for attack in ATTACKS),
    *((attack.name, "postgres") for attack in ON_BOTH),
]
UNGUARDED = "tests.system.unguarded_serve"
GUARDS = {
    "forms": "punycode form",
    "values": "bodies of very many values",
    "budgets": "ten slow readers of a calendar",
    "heads": "heads that do not end",
    "places": "idle connections",
}
"""Guards to turn off, and an attack that must then succeed."""
BROKEN = {
    "search flood": "tests.system.crowding_serve",
    "abandoned searches": "tests.system.crowding_serve",
    "one account": "tests.system.open_serve",
    "many accounts": "tests.system.open_serve",
    "many networks": "tests.system.open_serve",
}
"""Attacks that somebody else must feel when the product has no turns."""

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("name", "engine"), RUNS)
async def test_an_attack_stays_within_its_bars(name: str, engine: Engine) -> None:
    told = await run_attack(BY_NAME[name], engine)
    assert told["pass"], told


@pytest.mark.parametrize("guard", GUARDS)
async def test_without_its_guard_an_attack_shows(guard: str) -> None:
    attack = BY_NAME[GUARDS[guard]]
    off = replace(attack, settings=attack.settings | {"UNGUARDED": guard})
    assert (await run_attack(off, module=UNGUARDED))["findings"]


@pytest.mark.parametrize("name", BROKEN)
async def test_without_turns_others_feel_it(name: str) -> None:
    findings = (await run_attack(BY_NAME[name], module=BROKEN[name]))["findings"]
    assert any(finding.startswith(("somebody", "an h")) for finding in findings), findings


async def test_without_bounds_a_delete_holds_up_others() -> None:
    told = await run_attack(deletes.ONE_BIG, module="tests.system.unbounded_serve")
    assert any(finding.startswith(deletes.HELD_UP) for finding in told["findings"]), told
