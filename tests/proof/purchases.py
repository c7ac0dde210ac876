"""The lines of purchases: races of checkouts, what the owner hears of them, a generated client."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.checkouts import GUARDS, ONE_WRITER, run_races, run_unguarded
from tests.system.storefront_deliveries import run_steps

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
ROUNDS = 50
TRIES = 5
"""A race with a guard off must show it within this many rounds."""


async def checkout_races(seed: int) -> Outcome:
    """One cart, a hundred buyers of ten items, a coupon's last use: 50 rounds; guards off fail."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_races(engine, ROUNDS))
        for guard in GUARDS:
            if engine == "sqlite" and guard == ONE_WRITER:
                continue
            found = await run_unguarded(engine, guard, TRIES)
            outcome.figures[f"control: {engine}, {guard}"] = found
            outcome.need(bool(found), f"{engine}: {guard}, and no race shows it")
    return outcome


async def storefront_webhooks(seed: int) -> Outcome:
    """A lead, a signup, a checkout, a payment and more, as signed deliveries to the owner."""
    outcome = Outcome()
    for engine in ENGINES:
        outcome.add(engine, await run_steps(engine))
    return outcome


async def generated_client(seed: int) -> Outcome:
    """A TypeScript client that is generated from the served schema compiles and buys."""
    outcome = Outcome()
    await select(outcome, "tests/gateway/graphql/test_generated_client.py", at_least=3)
    return outcome


LINES: dict[str, Line] = {
    "checkout-races": checkout_races,
    "storefront-webhooks": storefront_webhooks,
    "generated-client": generated_client,
}
