"""Check that the PgBouncer before the server supports prepared statements."""

from __future__ import annotations

import asyncpg

from outbox.errors import CannotStart
from outbox.ids import Ids

_MINE = "select count(*) as mine from pg_prepared_statements where name = $1"
REFUSED = (
    "database.url points to a PgBouncer that does not support prepared statements; use PgBouncer "
    "1.21 or newer with max_prepared_statements above 0 (200 is a good value), or connect "
    "without it"
)


async def check(pool: asyncpg.Pool, ids: Ids) -> None:
    """Raise CannotStart unless the pooler renames prepared statements.

    PgBouncer 1.21 and later prepares statements under its own names on each of its sessions. When a
    statement appears under our name, the next transaction may get a session without it.
    """
    name = f"carteiro_{ids.token(8).hex()}"
    async with pool.acquire() as connection:
        await connection.execute("begin")
        try:
            statement = await connection.prepare(_MINE, name=name)
            seen = await statement.fetchval(name)
        finally:
            connection.terminate()
    if seen:
        raise CannotStart(REFUSED)
