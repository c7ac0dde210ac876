"""Find out what happened to a COMMIT that got no reply, or that a standby may not have.

Two things can be unknown: whether the transaction is committed, and whether a synchronous standby
has it. When the wait for the standby ends early (cancel, terminate, timeout, crash), the
transaction is committed on this server and perhaps nowhere else.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal

import asyncpg

from outbox.database.postgres.faults import LOST, fault_of
from outbox.database.postgres.hosts import Connection
from outbox.database.postgres.server import Server
from outbox.database.transaction import Insert, Row
from outbox.errors import OutcomeUnknown

PAUSE_SECONDS = 0.05
LET_GO_SECONDS = 0.3
# After a crash PostgreSQL may reuse an id of a transaction that never reached the disk, and so may
# a promoted standby that did not receive it. So `committed` is trusted only on the same timeline
# and without a crash since, or when the row of the transaction exists. Any role can see a crash:
# the recovery resets the statistics, and an orderly restart keeps them. The server's start time
# does not show it: the server survives the crash of one of its processes. PostgreSQL 14 keeps
# statistics in a file, too slow to read for each write; there the time of the reset is compared.
_RESET = "pg_stat_get_bgwriter_stat_reset_time()"
_TIMELINE = "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
_MARK = f"""cast({{xid}}() as text) as xid, now() as began, {_TIMELINE} as timeline,
  case when current_setting('server_version_num') >= '150000' then {_RESET} end as reset"""
_MARKED = f"select {_MARK.format(xid='pg_current_xact_id_if_assigned')}"
_MARKING = f" returning {_MARK.format(xid='pg_current_xact_id')}"
_STATUS = f"""
select pg_xact_status(cast(cast($1 as text) as xid8)) as status,
  {_TIMELINE} = $2 and coalesce({_RESET} = $3, {_RESET} < $4) as ran_on
where not pg_is_in_recovery()
"""
# A session that nobody listens to would stay until the server notices the lost connection. Another
# server, and the same one after a crash, has no session with this number and start.
_ENDED = """
select case when pg_is_in_recovery() then 'in recovery'
  when (select count(pg_terminate_backend(pid)) from pg_stat_activity
    where pid = $1 and backend_start = $2) > 0 then 'in progress'
  else 'never' end
"""
# This writes WAL; without it COMMIT would neither flush nor wait for the standby.
_MESSAGE = "select pg_logical_emit_message(true, 'carteiro', '')"

Status = Literal["committed", "aborted", "in progress", "in recovery", "never"] | None


@dataclass(frozen=True, slots=True)
class Mark:
    """The identity of one transaction. `xid` is None when the transaction has written nothing."""

    xid: str | None
    timeline: str
    reset: datetime | None
    """When the server had last reset its statistics; unknown on PostgreSQL 14."""
    began: datetime
    wrote: tuple[Insert, str] | None
    """One of its rows, by its first value; no other transaction writes this value."""


@dataclass(frozen=True, slots=True)
class Session:
    """The server's process that ran a statement outside a transaction, and a row of it.

    The statement commits by itself, so its xid is unknown when the reply is lost. When the process
    has ended, the statement has taken place or never will, and the row tells which.
    """

    pid: int
    started: datetime
    wrote: tuple[Insert, str] | None


@lru_cache(maxsize=1024)
def marking(insert: str) -> str:
    """Return an INSERT with a RETURNING clause for `mark`."""
    return insert + _MARKING


async def mark(
    connection: Connection, row: Row | None = None, wrote: tuple[Insert, str] | None = None
) -> Mark:
    """Return the mark of the open transaction; `row` is the result of `marking`, if it ran."""
    state: Any = row if row is not None else await connection.fetchrow(_MARKED)
    return Mark(state["xid"], state["timeline"], state["reset"], state["began"], wrote)


async def commit(connection: Connection, statement: str = "commit", *values: Any) -> bool:
    """Run COMMIT, or a statement that commits by itself.

    Return False when the server warns that it ended its wait for a standby. Raise the error of a
    broken connection or of a refused COMMIT.
    """
    # Of the connection itself: its pool may have taken it back by the reply.
    heard_warning = connection.heard_warning
    heard_warning()
    await connection.execute(statement, *values)
    return not heard_warning()


async def commit_rows(connection: Connection, text: str, *values: Any) -> tuple[list[Row], bool]:
    """Run a statement that commits by itself; return its rows, and what `commit` returns."""
    heard_warning = connection.heard_warning
    heard_warning()
    rows: list[Row] = await connection.fetch(text, *values)
    return rows, not heard_warning()


async def let_go(connection: Connection) -> None:
    """Close a connection that may wait for a standby, and end that wait.

    A session that is only abandoned waits on at the server, and such sessions would accumulate.
    """
    with suppress(*LOST, asyncpg.PostgresError):
        await connection.close(timeout=LET_GO_SECONDS)


class CommitOutcomes:
    """Looks up the outcome of transactions on new connections that bypass any pooler."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def committed(self, mark: Mark | Session, deadline: float) -> bool:
        """Return whether the transaction is committed and stored on every required server.

        False: it is not committed and never will be. Raise OutcomeUnknown at `deadline` (on the
        event loop's clock), or when no server can answer.
        """
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    committed = await self._try_once(mark)
                    if committed is not None:
                        return committed
                    await asyncio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            raise unknown() from None

    async def _try_once(self, mark: Mark | Session) -> bool | None:
        """Try once; return None when it is too early for an answer."""
        try:
            connection = await self._server.connect()
            try:
                took_place = await _took_place(connection, mark)
                if took_place and not await _confirmed(connection):
                    return None
                return took_place
            finally:
                await let_go(connection)
        except OutcomeUnknown:
            raise
        except Exception as error:
            if fault_of(error) is None:
                raise unknown() from error
            # The server is starting, or another server is taking over.
            return None


async def _took_place(connection: Connection, mark: Mark | Session) -> bool | None:
    status, ran_on = await _status(connection, mark)
    if status in ("in progress", "in recovery"):
        return None
    if mark.wrote is not None:
        # A separate statement after the status: one snapshot for both may be older than the COMMIT
        # that the status reports, and would report a committed write as missing.
        insert, first = mark.wrote
        if await connection.fetchval(insert.found, first):
            return True
        if status == "committed":
            # The id now belongs to another transaction.
            return False
    if status in ("aborted", "never"):
        return False
    if status == "committed" and ran_on:
        return True
    raise unknown()


async def _status(connection: Connection, mark: Mark | Session) -> tuple[Status, bool]:
    if isinstance(mark, Session):
        return await connection.fetchval(_ENDED, mark.pid, mark.started), False
    try:
        row = await connection.fetchrow(_STATUS, mark.xid, mark.timeline, mark.reset, mark.began)
    except asyncpg.InvalidParameterValueError:
        # The id is in the future: after a crash or a failover no transaction has used it yet.
        return "never", False
    return (row["status"], bool(row["ran_on"])) if row else ("in recovery", False)


async def _confirmed(connection: Connection) -> bool:
    """Return whether a later COMMIT succeeds: earlier entries of the log have then arrived too."""
    await connection.execute("begin")
    await connection.execute(_MESSAGE)
    return await commit(connection)


def unknown() -> OutcomeUnknown:
    """Return the error for an outcome that no server can report."""
    return OutcomeUnknown(
        "connection", "PostgreSQL: no reply to COMMIT: it may have been written; look first"
    )
