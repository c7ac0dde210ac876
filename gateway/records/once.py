"""Writes that happen once: the outcome is kept under a key beside the write, for its repeats."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from gateway.records.errors import Refusal
from outbox.database.plans import by_index
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable

P = ParamSpec("P")
T = TypeVar("T")

KEPT = 24 * 3600 * 1_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a write came to, as the door that made it wrote it down and renders it again."""

    status: int
    body: bytes
    headers: dict[str, str]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Once:
    """One use of a key: whose, for what, and a fingerprint of what was sent.

    `method` and `path` are the scope of the key beside its owner: the same key may be used for
    another operation.
    """

    owner_id: str
    key: str
    method: str
    path: str
    fingerprint: bytes


async def write(
    db: Database,
    use: Once | None,
    outcome: Callable[[T], Outcome],
    unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Outcome:
    """`db.write(unit, …)`, whose result `outcome` writes down; with a use of a key, at most once.

    A repeat waits for the first and gets its outcome. Raises idempotency_mismatch when its body is
    another, idempotency_in_progress when the first takes too long, and what the unit raises.
    """

    claiming = False

    async def once(tx: Tx) -> Outcome:
        nonlocal claiming
        claiming = use is not None
        if use is not None and not await _claim(tx, use):
            return await _stored(tx, use)
        claiming = False
        found = outcome(await unit(tx, *args, **kwargs))
        if use is not None:
            await tx.run(_KEEP, *_scope(use), found.status, json.dumps(found.headers), found.body)
        return found

    try:
        return await db.write(once)
    except DatabaseUnavailable as error:
        # On PostgreSQL the claim waits for the first, as long as any statement may for a lock.
        if claiming and error.kind == "busy" and db.engine == "postgres":
            raise Refusal(
                "idempotency_in_progress",
                "The first request with this Idempotency-Key is still running; try again.",
                facts={"retry_after": 1},
            ) from error
        raise


PRUNE = """
delete from idempotency where (owner_id, key, method, path) in (
  select owner_id, key, method, path from idempotency where created_at < $1
  order by created_at limit $2)
"""


async def prune(tx: Tx, limit: int) -> int:
    """Forget up to `limit` outcomes older than a day; how many went."""
    await by_index(tx)
    return await tx.run(PRUNE, tx.now - KEPT, limit)


_CLAIM = """
insert into idempotency (owner_id, key, method, path, fingerprint, created_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (owner_id, key, method, path) do nothing
"""
_EXPIRE = """
delete from idempotency
where owner_id = $1 and key = $2 and method = $3 and path = $4 and created_at < $5
"""
_KEEP = """
update idempotency set status = $5, headers = $6, body = $7
where owner_id = $1 and key = $2 and method = $3 and path = $4
"""
_STORED = """
select fingerprint, status, headers, body from idempotency
where owner_id = $1 and key = $2 and method = $3 and path = $4
"""


def _scope(use: Once) -> tuple[str, str, str, str]:
    return use.owner_id, use.key, use.method, use.path


async def _claim(tx: Tx, use: Once) -> bool:
    """Whether this transaction is the first with the key; waits for one that is at work."""
    # A key that is older than a day is new again, even before it was pruned.
    await tx.run(_EXPIRE, *_scope(use), tx.now - KEPT)
    return await tx.run(_CLAIM, *_scope(use), use.fingerprint, tx.now) == 1


async def _stored(tx: Tx, use: Once) -> Outcome:
    row: Any = await tx.one(_STORED, *_scope(use))
    if bytes(row["fingerprint"]) != use.fingerprint:
        raise Refusal(
            "idempotency_mismatch",
            "This Idempotency-Key was used with another body; use a new key for a new request.",
        )
    headers = json.loads(row["headers"])
    return Outcome(row["status"], bytes(row["body"]), headers, replayed=True)
