"""Each attack stays within its bars, and exceeds them with its guard off (R37)."""

from __future__ import annotations

import pytest

from tests.support.engines import Engine
from tests.system.attacks import floods, work
from tests.system.attacks.attack import run_attack

ATTACKS = floods.ATTACKS | work.ON_BOTH | work.SIGN_INS
RUNS: list[tuple[str, Engine]] = [
    *((name, "sqlite") for name in ATTACKS), *((name, "postgres") for name in work.ON_BOTH),
]  # fmt: skip
GUARDS = {
    "any_form": "punycode form",
    "any_document": "3,000 fields of one name",
    "any_number_of_values": "very many values",
    "no_budgets": "ten slow readers of a calendar",
    "any_head": "heads that do not end",
    "places_kept": "idle connections",
}
"""Guards to turn off, and an attack that must then succeed."""
TURNS = {
    "search flood": "crowded_searches",
    "abandoned searches": "crowded_searches",
    "one account": "unlimited_sign_ins",
    "many accounts": "unlimited_sign_ins",
    "many networks": "unlimited_sign_ins",
}
"""Attacks that somebody else must feel when the product has no turns."""


@pytest.mark.parametrize(("name", "engine"), RUNS)
async def test_an_attack_stays_within_its_bars(name: str, engine: Engine) -> None:
    assert await run_attack(name, ATTACKS[name], engine) == []


@pytest.mark.parametrize("broken", GUARDS)
async def test_without_its_guard_an_attack_shows(broken: str) -> None:
    name = GUARDS[broken]
    assert await run_attack(name, ATTACKS[name], broken=broken)


@pytest.mark.parametrize("name", TURNS)
async def test_without_turns_others_feel_it(name: str) -> None:
    findings = await run_attack(name, ATTACKS[name], broken=TURNS[name])
    assert any(finding.startswith(("somebody", "an h")) for finding in findings), findings
