"""The configured PostgreSQL server: its addresses, its pools and how transactions begin."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import asyncpg

from outbox.database.postgres.hosts import Connection, Hosts, Session
from outbox.database.postgres.limits import MIGRATION, Limits
from outbox.database.postgres.reach import refusal
from outbox.errors import CannotStart
from outbox.ids import Ids

IDLE_SECONDS = 300.0
"""Seconds after which an unused pooled connection closes."""
_STARTED = "select backend_start from pg_stat_activity where pid = $1"
_MINE = "select count(*) as mine from pg_prepared_statements where name = $1"
REFUSED = (
    "database.url points to a PgBouncer that does not support prepared statements; use PgBouncer "
    "1.21 or newer with max_prepared_statements above 0 (200 is a good value), or connect "
    "without it"
)
READ = "begin isolation level repeatable read read only"
WRITE = "begin"


class Server:
    """A source of connections.

    With a `direct_url`, `url` points to a PgBouncer in transaction mode, which runs each
    transaction on any of its sessions. So settings apply inside the transaction only, and nothing
    outlives it.
    """

    def __init__(self, url: str, direct_url: str, synchronous_commit: str) -> None:
        self.pooled = bool(direct_url)
        self._hosts = Hosts(url)
        self._direct = Hosts(direct_url, "database.direct_url") if direct_url else self._hosts
        self._synchronous_commit = synchronous_commit
        self._version = 0
        """The server's major version, known after the first connection."""

    async def pool(self, limits: Limits, size: int) -> asyncpg.Pool:
        """Return a pool of up to `size` connections for transactions, opened on demand."""
        direct = limits is MIGRATION
        session = direct or not self.pooled
        pool: asyncpg.Pool = await asyncpg.create_pool(
            connect=(self._direct if direct else self._hosts).connect,
            min_size=0,
            max_size=size,
            connection_class=Session,
            statement_cache_size=512,
            # A migration is short, and afterwards nothing needs its connection.
            max_inactive_connection_lifetime=1.0 if direct else IDLE_SECONDS,
            reset=_keep,
            init=partial(self._prepare, limits if session else None),
            server_settings=self._session(limits) if session else None,
        )
        return pool

    async def connect(self) -> Connection:
        """Open a connection that bypasses any pooler, for LISTEN and other session features."""
        return await self._direct.connect(server_settings=self._session(MIGRATION))

    def refusal(self, error: BaseException) -> CannotStart:
        """Return the refusal of a start for an error of a first connection."""
        if self.pooled and error in self._direct.failed.values():
            return refusal(error, self._direct)
        return refusal(error, self._hosts)

    async def _prepare(self, limits: Limits | None, connection: Connection) -> None:
        """Apply the settings that an older server, or a pooler, would reject the connection for.

        Learn when the session has started; behind a pooler there is no session to know.
        """
        self._version = connection.get_server_version().major
        if limits is not None:
            always = limits.settings(0)
            settings = limits.settings(self._version).items()
            more = [f"set {name} = {value}" for name, value in settings if name not in always]
            if more:
                await connection.execute("; ".join(more))
            connection.started = await connection.fetchval(_STARTED, connection.get_server_pid())

    def begin(
        self, op: Literal["read", "write"], limits: Limits, statement: float | None = None
    ) -> str:
        """Return the statement that begins a transaction on a connection of `pool(limits, …)`.

        `statement` is another limit for its statements, in seconds.
        """
        settings: dict[str, str] = {}
        if self.pooled and limits is not MIGRATION:
            settings |= self._settings(limits, self._version)
        if statement is not None and limits.statement:
            settings["statement_timeout"] = str(int(min(statement, limits.statement) * 1000))
        begin = READ if op == "read" else WRITE
        return "; ".join(
            [begin, *(f"set local {name} = '{value}'" for name, value in settings.items())]
        )

    def _session(self, limits: Limits) -> dict[str, str]:
        return {"application_name": "carteiro", **self._settings(limits, 0)}

    def _settings(self, limits: Limits, version: int) -> Mapping[str, str]:
        return {
            **limits.settings(version),
            "synchronous_commit": self._synchronous_commit,
            "jit": "off",
        }


async def _keep(_: object) -> None:
    """Skip the pool's reset query: units change no settings of the session."""


async def check_pooler(pool: asyncpg.Pool, ids: Ids) -> None:
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
