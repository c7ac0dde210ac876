"""Open a database on either engine; outbox.database.transaction declares its interface."""

from __future__ import annotations

from typing import Literal

from outbox.clock import Clock
from outbox.database.database_urls import is_sqlite, normal, typed_file
from outbox.database.transaction import Database, SynchronousCommit
from outbox.errors import CannotStart
from outbox.ids import Ids


async def open(
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    serving: bool = False,
    synchronous: Literal["full", "normal"] = "full",
    pool_size: int = 10,
    direct_url: str = "",
    synchronous_commit: SynchronousCommit = "on",
) -> Database:
    """Open `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://user@host:port/name`.

    `serving` takes the lock of the single server process of an SQLite file and lets this connection
    checkpoint. `synchronous="normal"` can lose acknowledged writes in a power cut. A PostgreSQL URL
    may name several hosts. With a `direct_url`, `url` is the URL of a PgBouncer. Raise CannotStart
    with a one-line error.
    """
    try:
        url = normal(url)
    except ValueError as error:
        raise CannotStart(f"the URL of the database {error}") from None
    if is_sqlite(url):
        if direct_url:
            raise CannotStart(
                "database.direct_url is only for PostgreSQL behind PgBouncer; "
                "leave it empty for SQLite"
            )
        from outbox.database import sqlite

        return await sqlite.open(
            typed_file(url),
            clock=clock, ids=ids, serving=serving, synchronous=synchronous,
        )  # fmt: skip
    # asyncpg is an extra: an SQLite installation does not need it.
    try:
        from outbox.database import postgres
    except ModuleNotFoundError as missing:
        if missing.name != "asyncpg":
            raise
        raise CannotStart(
            "PostgreSQL needs the package asyncpg; install it beside this program, by "
            "`pip install asyncpg` or `pipx inject carteiro asyncpg`"
        ) from None

    return await postgres.open(
        url, clock=clock, ids=ids, pool_size=pool_size, synchronous=synchronous,
        direct_url=direct_url, synchronous_commit=synchronous_commit,
    )  # fmt: skip
