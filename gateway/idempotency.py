"""Idempotency-Key: the answer of a POST is kept beside its write, and given again to a repeat."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from gateway.access import Caller
from gateway.errors import Fault, Refusal
from outbox.database.plans import by_index
from outbox.database.transaction import Database, Tx
from outbox.errors import DatabaseUnavailable

P = ParamSpec("P")
T = TypeVar("T")

KEPT = 24 * 3600 * 1_000_000
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a door answers with, as far as a repeat gets it again."""

    status: int
    body: bytes
    headers: dict[str, str]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Ticket:
    """One use of a key: whose, for which request, and a fingerprint of the body."""

    owner_id: str
    key: str
    method: str
    path: str
    fingerprint: bytes


def ticket(caller: Caller, key: str | None, method: str, path: str, body: bytes) -> Ticket | None:
    """The use of the Idempotency-Key `key`; None without one. Raises validation_error.

    A caller who may not write gets none: the unit refuses it, and no stored answer is shown.
    """
    if key is None or "write" not in caller.scopes:
        return None
    if _KEY.fullmatch(key) is None:
        message = "Send an Idempotency-Key of 1 to 255 printable ASCII characters."
        raise Refusal(
            "validation_error", message,
            faults=[Fault("Idempotency-Key", "invalid_header", message)],
        )  # fmt: skip
    return Ticket(caller.user_id, key, method, path, hashlib.sha256(body).digest())


async def write(
    db: Database,
    use: Ticket | None,
    answer: Callable[[T], Answer],
    unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Answer:
    """`db.write(unit, …)`, answered by `answer`; with a ticket, at most once.

    A repeat waits for the first and gets its answer. Raises idempotency_mismatch when its body is
    another, idempotency_in_progress when the first takes too long, and what the unit raises.
    """

    claiming = False

    async def once(tx: Tx) -> Answer:
        nonlocal claiming
        claiming = use is not None
        if use is not None and not await _claim(tx, use):
            return await _stored(tx, use)
        claiming = False
        found = answer(await unit(tx, *args, **kwargs))
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
                headers={"Retry-After": "1"},
            ) from error
        raise


PRUNE = """
delete from idempotency where (owner_id, key, method, path) in (
  select owner_id, key, method, path from idempotency where created_at < $1
  order by created_at limit $2)
"""


async def prune(tx: Tx, limit: int) -> int:
    """Forget up to `limit` answers older than a day; how many went."""
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


def _scope(use: Ticket) -> tuple[str, str, str, str]:
    return use.owner_id, use.key, use.method, use.path


async def _claim(tx: Tx, use: Ticket) -> bool:
    """Whether this transaction is the first with the key; waits for one that is at work."""
    # A key that is older than a day is new again, even before it was pruned.
    await tx.run(_EXPIRE, *_scope(use), tx.now - KEPT)
    return await tx.run(_CLAIM, *_scope(use), use.fingerprint, tx.now) == 1


async def _stored(tx: Tx, use: Ticket) -> Answer:
    row: Any = await tx.one(_STORED, *_scope(use))
    if bytes(row["fingerprint"]) != use.fingerprint:
        raise Refusal(
            "idempotency_mismatch",
            "This Idempotency-Key was used with another body; use a new key for a new request.",
        )
    headers = json.loads(row["headers"])
    return Answer(row["status"], bytes(row["body"]), headers, replayed=True)
