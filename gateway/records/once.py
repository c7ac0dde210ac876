"""Runs a write once per idempotency key and stores its outcome for repeated requests."""

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
    """The stored response replayed for a repeated key, in the format of its door."""

    status: int
    body: bytes
    headers: dict[str, str]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Once:
    """One use of a key: its owner, its operation, and a fingerprint of the request body.

    A key is unique per owner, `method` and `path`: another operation may use the same key.
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
    """Run `db.write(unit, …)` and return its outcome; with a use of a key, at most once.

    `outcome` converts the result of the unit. A repeat waits for the first request and gets its
    outcome. Raises idempotency_mismatch for a different body, idempotency_in_progress when the
    first request takes too long, and the errors of the unit.
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
        # On PostgreSQL the claim waits for the first request, up to the lock timeout.
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
    """Delete up to `limit` outcomes older than a day; return how many."""
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
    """Return whether this transaction is the first with the key; wait for a concurrent one."""
    # A key expires after a day, even before it is pruned.
    await tx.run(_EXPIRE, *_scope(use), tx.now - KEPT)
    return await tx.run(_CLAIM, *_scope(use), use.fingerprint, tx.now) == 1


async def _stored(tx: Tx, use: Once) -> Outcome:
    row: Any = await tx.one(_STORED, *_scope(use))
    if bytes(row["fingerprint"]) != use.fingerprint:
        raise Refusal(
            "idempotency_mismatch",
            "This Idempotency-Key was used with a different body; use a new key for a new request.",
        )
    headers = json.loads(row["headers"])
    return Outcome(row["status"], bytes(row["body"]), headers, replayed=True)
