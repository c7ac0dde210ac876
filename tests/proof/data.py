"""The lines of the data: a backup under load and of a size, and a copy with waiting deliveries."""

from __future__ import annotations

from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.backup_sizes import run_size
from tests.system.backups import run_backup_under_load
from tests.system.copies import run_copy

WAYS: tuple[tuple[Engine, Engine], ...] = (
    ("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "postgres"), ("postgres", "sqlite"),
)  # fmt: skip
TORN = "tests.system.torn_backup"
TRIES = 3
MIB = 1_024


async def backup(seed: int) -> Outcome:
    """Back up under load, restore and serve, all ways; 1 GiB timed; damaged files; every table."""
    outcome = Outcome()
    for engine, on in WAYS:
        outcome.add(f"{engine} to {on}", await run_backup_under_load(engine, on, seed))
    for engine in dict.fromkeys(engine for engine, _ in WAYS):
        await _torn(outcome, engine, seed)
    outcome.add("size", await run_size(MIB))
    await select(outcome, "tests/gateway/cli/data", "-m", "faults or not faults", at_least=60)
    return outcome


async def copy(seed: int) -> Outcome:
    """Copy 100,000 records; each waiting delivery goes out once; serving both must fail."""
    outcome = Outcome()
    outcome.add("after a stop", await run_copy(seed))
    outcome.add("after a kill", await run_copy(seed, records=10_000, unseen=1_000, end="kill"))
    told = await run_copy(seed, records=1_000, unseen=500, careless=True)
    outcome.figures["control: both serve"] = {"duplicated": told["duplicated"]}
    outcome.need(told["duplicated"] > 0, "both serve without duplicates: the bar proves nothing")
    return outcome


async def _torn(outcome: Outcome, engine: Engine, seed: int) -> None:
    for tried in range(TRIES):
        told = await run_backup_under_load(engine, "sqlite", seed + tried, module=TORN)
        outcome.figures[f"control: {engine} without a snapshot"] = told["findings"]
        if told["findings"]:
            return
    outcome.reasons.append(f"{engine}: a torn backup passes: the bar proves nothing")


LINES: dict[str, Line] = {"backup": backup, "copy": copy}
