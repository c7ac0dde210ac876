"""Whether the PgBouncer before the server can carry prepared statements."""

from __future__ import annotations

import asyncpg

from outbox.errors import CannotStart
from outbox.ids import Ids

_MINE = "select count(*) as mine from pg_prepared_statements where name = $1"
REFUSED = (
    "database.url leads to a PgBouncer that does not carry prepared statements; use PgBouncer "
    "1.21 or newer with max_prepared_statements above 0 (200 is a good value), or connect "
    "without it"
)


async def check(pool: asyncpg.Pool, ids: Ids) -> None:
    """Raises CannotStart unless prepared statements are renamed on their way.

    PgBouncer from 1.21 on prepares them under names of its own on each of its sessions; where a
    statement is found under ours, the next transaction may meet a session that lacks it.
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
