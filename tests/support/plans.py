"""Measure the buffers that a statement reads on PostgreSQL under each plan mode."""

from __future__ import annotations

import json
from typing import Any

from outbox.database.sql import translate
from outbox.database.transaction import Tx

MODES = ("force_custom_plan", "force_generic_plan")


async def buffers(tx: Tx, name: str, statement: str, args: tuple[Any, ...]) -> dict[str, int]:
    """Run `statement` under each plan mode; return its buffers by `name` and mode."""
    values = ", ".join(f"'{value}'" for value in args)
    plan = "the_" + "".join(c if c.isalnum() else "_" for c in name)
    await tx.run(f"prepare {plan} as {translate(statement, 'postgres')}")
    touched = {}
    for mode in MODES:
        await tx.run(f"set local plan_cache_mode = {mode}")
        told = await tx.one(
            f"explain (analyze, buffers, format json) execute {plan}" + f"({values})" * bool(args)
        )
        assert told is not None
        [found] = json.loads(told[0])
        top = found["Plan"]
        touched[f"{name} {mode}"] = top["Shared Hit Blocks"] + top["Shared Read Blocks"]
        assert touched[f"{name} {mode}"] > 0, found
    return touched
