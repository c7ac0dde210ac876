"""The line of the attacks: the cost of each to the server, with its guard on and off."""

from __future__ import annotations

from dataclasses import replace

from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.attacks import bodies, connections, deletes, forms, memory, searches, sign_in
from tests.system.attacks.attack import Attack, run_attack

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
ATTACKS: tuple[Attack, ...] = (
    *forms.ATTACKS,
    *bodies.ATTACKS,
    *memory.ATTACKS,
    *connections.ATTACKS,
    *searches.ATTACKS,
    *deletes.ATTACKS,
    *sign_in.ATTACKS,
)
ON_BOTH = {attack.name for attack in (*searches.ATTACKS, *deletes.ATTACKS)}
"""Attacks on code that differs between the engines."""
UNGUARDED = "tests.system.unguarded_serve"
UNBOUNDED = "tests.system.unbounded_serve"
CONTROLS = {
    "forms": "punycode form",
    "values": "bodies of very many values",
    "budgets": "ten slow readers of a calendar",
    "heads": "heads that do not end",
    "places": "idle connections",
}
"""Guards to turn off, and an attack that must then succeed."""
MODULES = {
    "search flood": "tests.system.crowding_serve",
    "many accounts": "tests.system.open_serve",
}
"""Attacks that must succeed against a program without turns or bounds."""


async def attacks(seed: int) -> Outcome:
    """Run each attack within its bars; with its guard off it must exceed them."""
    outcome = Outcome()
    by_name = {attack.name: attack for attack in ATTACKS}
    for attack in ATTACKS:
        for engine in ENGINES if attack.name in ON_BOTH else ENGINES[:1]:
            outcome.add(f"{engine}: {attack.name}", await run_attack(attack, engine))
    for guard, name in CONTROLS.items():
        settings = by_name[name].settings | {"UNGUARDED": guard}
        await _goes_red(outcome, replace(by_name[name], settings=settings), UNGUARDED, guard)
    for name, module in MODULES.items():
        await _goes_red(outcome, by_name[name], module, name)
    await _goes_red(outcome, deletes.ONE_BIG, UNBOUNDED, "bounded deletes", deletes.HELD_UP)
    return outcome


async def _goes_red(
    outcome: Outcome, attack: Attack, module: str, guard: str, by: str = ""
) -> None:
    """Run with the guard off; require a finding that begins with `by`."""
    found = (await run_attack(attack, module=module))["findings"]
    outcome.figures[f"control: {guard}"] = found
    outcome.need(
        any(one.startswith(by) for one in found), f"{guard}: the attack does not show without it"
    )


LINES: dict[str, Line] = {"attacks": attacks}
