"""Runs a write once per idempotency key and stores its outcome for repeated requests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from gateway.records.errors import Refusal
from outbox.database.expiry import Expiry
from outbox.database.transaction import Database, Tx, brief
from outbox.durations import DAY
from outbox.errors import DatabaseUnavailable

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

KEPT = DAY


@dataclass(frozen=True, slots=True)
class Once:
    """One use of a key: its owner, its operation, and a fingerprint of the request.

    A key is unique per owner and operation: another operation may use the same key.
    """

    owner_id: str
    key: str
    operation: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class Outcomes(Generic[T, R]):
    """How a door makes the outcome of a unit, keeps it as text, and restores it for a repeat."""

    of: Callable[[T], R]
    keep: Callable[[R], str]
    restore: Callable[[str], R]


async def write(
    db: Database,
    use: Once | None,
    outcomes: Outcomes[T, R],
    unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> R:
    """Run `db.write(unit, …)` and return its outcome; with a use of a key, at most once.

    Without a key the outcome is made after COMMIT. A repeat waits for the first request and gets
    its outcome. Raises idempotency_mismatch for a different body, idempotency_in_progress when the
    first request takes too long, and the errors of the unit.
    """
    if use is None:
        return outcomes.of(await db.write(unit, *args, **kwargs))
    claiming = False

    @brief
    async def once(tx: Tx) -> R:
        nonlocal claiming
        claiming = True
        if not await _claim(tx, use):
            return outcomes.restore(await _stored(tx, use))
        claiming = False
        outcome = outcomes.of(await unit(tx, *args, **kwargs))
        await tx.run(_KEEP, *_scope(use), outcomes.keep(outcome))
        return outcome

    # Traces show the name of the unit.
    once.__name__ = getattr(unit, "__name__", "once")
    try:
        return await db.write(once)
    except DatabaseUnavailable as error:
        # On PostgreSQL the claim waits for the first request, up to the lock timeout.
        if claiming and error.kind == "busy" and db.engine == "postgres":
            raise Refusal(
                "idempotency_in_progress",
                "The first request with this Idempotency-Key is still running; try again.",
                facts={"retry_after": 1},
            ) from error
        raise


async def is_repeat(tx: Tx, use: Once) -> bool:
    """Return whether a request with the key was carried out, of whatever content."""
    row = await tx.one(_KNOWN, *_scope(use), tx.now - KEPT)
    return row is not None


EXPIRY = Expiry("idempotency", "owner_id, key, operation", "created_at", KEPT)


_CLAIM = """
insert into idempotency (owner_id, key, operation, fingerprint, created_at)
values ($1, $2, $3, $4, $5)
on conflict (owner_id, key, operation) do nothing
"""
_EXPIRE = """
delete from idempotency
where owner_id = $1 and key = $2 and operation = $3 and created_at < $4
"""
_KNOWN = """
select 1 as known from idempotency
where owner_id = $1 and key = $2 and operation = $3 and created_at >= $4
"""
_KEEP = """
update idempotency set outcome = $4 where owner_id = $1 and key = $2 and operation = $3
"""
_STORED = """
select fingerprint, outcome from idempotency
where owner_id = $1 and key = $2 and operation = $3
"""


def _scope(use: Once) -> tuple[str, str, str]:
    return use.owner_id, use.key, use.operation


async def _claim(tx: Tx, use: Once) -> bool:
    """Return whether this transaction is the first with the key; wait for a concurrent one."""
    # A key expires after a day, even before it is pruned.
    await tx.run(_EXPIRE, *_scope(use), tx.now - KEPT)
    return await tx.run(_CLAIM, *_scope(use), use.fingerprint, tx.now) == 1


async def _stored(tx: Tx, use: Once) -> str:
    row: Any = await tx.one(_STORED, *_scope(use))
    if bytes(row["fingerprint"]) != use.fingerprint:
        raise Refusal(
            "idempotency_mismatch",
            "This Idempotency-Key was used with a different body; use a new key for a new request.",
        )
    return str(row["outcome"])
