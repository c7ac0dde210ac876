"""The configured PostgreSQL server: its addresses, its pools and how transactions begin."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import asyncpg

from outbox.database.postgres.faults import is_full
from outbox.database.postgres.first_session import (
    Found,
    look,
    must_be_utf_8,
    must_keep_sessions,
    must_serve,
)
from outbox.database.postgres.hosts import Connection, Hosts, Session
from outbox.database.postgres.limits import MIGRATION, Limits
from outbox.database.postgres.reach import refusal
from outbox.database.postgres.room import AGAIN_SECONDS, House
from outbox.errors import CannotStart
from outbox.ids import Ids

IDLE_SECONDS = 300.0
"""Seconds after which an unused pooled connection closes."""
_STARTED = "select backend_start from pg_stat_activity where pid = $1"
_PLACE = """
select cast(current_database() as text) as database, cast(current_schema() as text) as schema,
  pg_postmaster_start_time() as began
"""
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

    def __init__(
        self, url: str, direct_url: str, synchronous_commit: str, looks: bool = True
    ) -> None:
        """Without `looks` the first session is as it is: an installation is not expected there."""
        self.pooled = bool(direct_url)
        self._hosts = Hosts(url)
        self._direct = Hosts(direct_url, "database.direct_url") if direct_url else self._hosts
        self._found: Found | None = None
        """What the first session of `_direct` has found."""
        self._looks = looks
        self.house = House()
        self._by_statement = False
        """Whether settings are statements, since a pooler may refuse or ignore parameters."""
        self._synchronous_commit = synchronous_commit
        self._version = 0
        """The server's major version, known after the first connection."""

    async def pool(self, limits: Limits, size: int) -> asyncpg.Pool:
        """Return a pool of up to `size` connections for transactions, opened on demand."""
        direct = limits is MIGRATION
        session = direct or not self.pooled
        given = self._session(limits, 0) if session else {}
        pool: asyncpg.Pool = await asyncpg.create_pool(
            connect=partial(self._open, self._direct if direct else self._hosts),
            min_size=0,
            max_size=size,
            connection_class=Session,
            statement_cache_size=512,
            # A migration is short, and afterwards nothing needs its connection.
            max_inactive_connection_lifetime=1.0 if direct else IDLE_SECONDS,
            reset=_keep,
            init=partial(self._prepare, limits if session else None, given),
            server_settings=given or None,
        )
        return pool

    def refusal(self, error: BaseException) -> CannotStart:
        """Return the refusal of a start for an error of a first connection."""
        if self.pooled and error in self._direct.failed.values():
            return refusal(error, self._direct)
        return refusal(error, self._hosts)

    async def connect(self, seconds: float = 0.0) -> Connection:
        """Open a connection that bypasses any pooler, for LISTEN and other session features.

        Wait up to so many seconds while the server has none left.
        """
        given = self._session(MIGRATION, 0)
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            try:
                connection = await self._open(self._direct, server_settings=given)
                break
            except asyncpg.PostgresError as error:
                if not is_full(error):
                    raise
                self.house.needs()
                if loop.time() >= end:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)
        try:
            await self._settle(MIGRATION, 0, given, connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def must_keep(self, connection: Connection) -> None:
        """Raise CannotStart when a pooler gives each transaction another session."""
        if self._by_statement:
            await must_keep_sessions(connection, partial(self._open, self._direct), self._direct)

    def must_be_utf_8(self) -> None:
        """Raise CannotStart when the first session is in a database of another encoding."""
        assert self._found is not None
        must_be_utf_8(self._found)

    async def check(self, pool: asyncpg.Pool, ids: Ids) -> None:
        """Raise CannotStart when the sessions of the server, or a pooler before it, do not serve.

        It costs a second connection and seven statements, at the start.
        """
        if self.pooled:
            await check_pooler(pool, ids)
            connection = await self.connect()
            try:
                await self._check(connection)
                async with pool.acquire() as through:
                    await self._must_be_one_place(through)
            finally:
                connection.terminate()
        else:
            async with pool.acquire() as connection:
                await self._check(connection)

    async def _check(self, connection: Connection) -> None:
        assert self._found is not None
        await must_keep_sessions(connection, partial(self._open, self._direct), self._direct)
        await must_serve(connection, self._found, self._direct.setting)

    async def _must_be_one_place(self, through: Connection) -> None:
        assert self._found is not None
        await through.execute("begin")
        row = await through.fetchrow(_PLACE)
        await through.execute("commit")
        if (row["database"], row["schema"]) != (self._found.database, self._found.schema):
            raise CannotStart(
                f"database.url leads to the schema {row['schema']} of the database "
                f"{row['database']}, but database.direct_url to {self._found.schema} of "
                f"{self._found.database}; correct one of them, or the search_path of the role"
            )
        if row["began"] != self._found.began:
            raise CannotStart(
                "database.url and database.direct_url lead to two servers, which both have a "
                f"database {self._found.database}; correct one of them"
            )

    async def _open(self, hosts: Hosts, *_: object, **options: Any) -> Connection:
        """Connect, without parameters once a pooler has refused them."""
        if self._by_statement and hosts is self._direct:
            options["server_settings"] = None
        try:
            try:
                return await hosts.connect(**options)
            except (asyncpg.ProtocolViolationError, asyncpg.FeatureNotSupportedError) as error:
                if is_full(error) or not options.get("server_settings"):
                    raise
            self._by_statement = True
            return await hosts.connect(**options | {"server_settings": None})
        except asyncpg.PostgresError as error:
            if self._found is not None or not self._looks:
                self.house.tell(error)
            raise

    async def _prepare(
        self, limits: Limits | None, given: Mapping[str, str], connection: Connection
    ) -> None:
        """Apply the settings that an older server, or a pooler, would reject the connection for.

        Learn when the session has started; behind a pooler there is no session to know.
        """
        self._version = connection.get_server_version().major
        if limits is not None:
            await self._settle(limits, self._version, given, connection)
            if not self._by_statement:
                pid = connection.get_server_pid()
                connection.started = await connection.fetchval(_STARTED, pid)

    async def _settle(
        self, limits: Limits, version: int, given: Mapping[str, str], connection: Connection
    ) -> None:
        """Look where the first session is; apply settings that were not `given` to connect."""
        if self._found is None and self._looks:
            self._found = session = await look(connection, self._direct)
            # A pooler tells numbers of its own, and may ignore what it was given.
            self._by_statement |= session.pid != connection.get_server_pid()
        if self._by_statement:
            given = {}
        settings = self._session(limits, version).items()
        more = [f"set {name} = '{value}'" for name, value in settings if given.get(name) != value]
        if more:
            await connection.execute("; ".join(more))

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

    def _session(self, limits: Limits, version: int) -> dict[str, str]:
        schema = self._found.schema if self._found else None
        return {"application_name": _name(schema), **self._settings(limits, version)}

    def _settings(self, limits: Limits, version: int) -> Mapping[str, str]:
        return {
            **limits.settings(version),
            "synchronous_commit": self._synchronous_commit,
            "jit": "off",
        }


def _name(schema: str | None) -> str:
    """Return by which name others of the same schema know a session."""
    if schema in (None, "public"):
        return "carteiro"
    assert schema is not None
    # The server cuts long names, and changes what is not ASCII.
    short = schema.isidentifier() and schema.isascii() and len(schema) <= 50
    return f"carteiro {schema if short else hashlib.sha256(schema.encode()).hexdigest()[:32]}"


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
