"""The lines of the storefront's contract: every operation as documented, and nothing crosses."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome


async def operations(seed: int) -> Outcome:
    """Send every documented operation with cookies; compare results and cookies' attributes."""
    outcome = Outcome()
    await select(
        outcome, "tests/gateway/graphql", "tests/docs/test_operations_page.py", "-k",
        "operation or contract or documented or cookie or (test_stores and document)", at_least=40,
    )  # fmt: skip
    return outcome


async def crossings(seed: int) -> Outcome:
    """Send every operation as three other people: nothing of a customer reaches them."""
    outcome = Outcome()
    await select(
        outcome, "tests/gateway/graphql", "-k", "crosses or three_people or nobody_reaches",
        at_least=10,
    )  # fmt: skip
    return outcome


LINES: dict[str, Line] = {"storefront-operations": operations, "storefront-crossings": crossings}
