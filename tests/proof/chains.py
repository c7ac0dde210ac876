"""The lines of the log as evidence: each change is found, and a million rows expire under load."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.expiring import run_expiry
from tests.system.verifying import run_verify

ATTEMPTS = 100_000
EXPIRED: dict[Engine, int] = {"sqlite": 1_000_000, "postgres": 200_000}


async def verify(seed: int) -> Outcome:
    """Verify 100,000 attempts in a minute and find each change; retention and erasure are none."""
    outcome = Outcome()
    engines: tuple[Engine, ...] = ("sqlite", "postgres")
    for engine in engines:
        outcome.add(engine, await run_verify(engine, ATTEMPTS, seed))
    files = ("outbox/queue/test_chain.py", "outbox/queue/test_gaps.py",
             "outbox/queue/test_erasure.py", "gateway/cli/test_verify.py")  # fmt: skip
    await select(outcome, *(f"tests/{file}" for file in files), at_least=50)
    return outcome


async def retention(seed: int) -> Outcome:
    """Let a million finished deliveries expire beside quick writes, in a bounded file (R17)."""
    outcome = Outcome()
    for engine, rows in EXPIRED.items():
        outcome.add(engine, await run_expiry(engine, rows, seed))
    return outcome


LINES: dict[str, Line] = {"verify": verify, "retention": retention}
