"""What became of a COMMIT that got no answer, or one in doubt.

Two things can be unknown: whether the transaction took place, and whether a synchronous standby
has it. A wait for the standby that is ended (cancel, terminate, timeout, crash) leaves the
transaction committed here and perhaps nowhere else.
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
from outbox.database.postgres.hosts import Connection, is_gone
from outbox.database.postgres.server import Server
from outbox.database.transaction import Insert, Row
from outbox.errors import OutcomeUnknown

PAUSE_SECONDS = 0.05
LET_GO_SECONDS = 0.3
_MARK = """cast({xid}() as text) as xid, now() as began,
  substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline"""
_MARKED = f"select {_MARK.format(xid='pg_current_xact_id_if_assigned')}"
_MARKING = f" returning {_MARK.format(xid='pg_current_xact_id')}"
# After a crash PostgreSQL may give an id that had left no trace on disk to another transaction, and
# so may a standby that was promoted without it. So `committed` is believed only where the server
# has run on since (its checkpointer tells) on the same timeline, or where its row is there.
_STATUS = """
select case when not pg_is_in_recovery()
    then pg_xact_status(cast(cast($1 as text) as xid8)) else 'in recovery' end as status,
  coalesce((select max(backend_start) < $2 from pg_stat_activity
    where backend_type = 'checkpointer'), false)
  and case when not pg_is_in_recovery()
    then substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) = $3 end as ran_on
"""
# It writes WAL, or its COMMIT would neither be flushed nor wait for the standby.
_MESSAGE = "select pg_logical_emit_message(true, 'carteiro', '')"

Status = Literal["committed", "aborted", "in progress", "in recovery", "never"] | None


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells one transaction from all others. `xid` is None when it has written nothing."""

    xid: str | None
    began: datetime
    timeline: str
    wrote: tuple[Insert, str] | None
    """A row of it by its first value, that no other transaction writes."""


@lru_cache(maxsize=64)
def marking(insert: Insert) -> str:
    """The statement of `insert` that also returns what `mark` wants."""
    return insert.statement + _MARKING


async def mark(
    connection: Connection, row: Row | None = None, wrote: tuple[Insert, str] | None = None
) -> Mark:
    """The mark of the transaction open on `connection`; `row` is what `marking` gave, if it ran."""
    found: Any = row if row is not None else await connection.fetchrow(_MARKED)
    return Mark(found["xid"], found["began"], found["timeline"], wrote)


async def commit(connection: Connection) -> bool:
    """COMMIT; False when the server ended its wait for a standby and says so with a warning.

    Raises what breaks off the connection, and what a COMMIT may be refused with.
    """
    warnings: list[object] = []

    def note(_: object, message: Any) -> None:
        # By severity alone: the text is in the server's language, and no other warning is expected.
        if (message.severity_en or message.severity) == "WARNING":
            warnings.append(message)

    connection.add_log_listener(note)
    try:
        await connection.execute("commit")
    finally:
        if not is_gone(connection):
            connection.remove_log_listener(note)
    return not warnings


async def let_go(connection: Connection) -> None:
    """Close a connection that may be waiting for a standby: that wait is ended with it.

    A session that is only left would wait on at the server, and soon they would be too many.
    """
    with suppress(*LOST, asyncpg.PostgresError):
        await connection.close(timeout=LET_GO_SECONDS)


class Fates:
    """Asks for fates, on new connections past any pooler."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def committed(self, mark: Mark, deadline: float) -> bool:
        """Whether the transaction took place, and is wherever COMMITs must be before they count.

        False: it did not, and never will. Raises OutcomeUnknown at `deadline` (by the event loop's
        clock), or when nobody can say.
        """
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    found = await self._asked(mark)
                    if found is not None:
                        return found
                    await asyncio.sleep(PAUSE_SECONDS)
        except TimeoutError:
            raise unknown() from None

    async def _asked(self, mark: Mark) -> bool | None:
        """One try; None when it is too early to say."""
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
            # The server is on its way up, or another one takes its place.
            return None


async def _took_place(connection: Connection, mark: Mark) -> bool | None:
    status, ran_on = await _status(connection, mark)
    if status in ("in progress", "in recovery"):
        return None
    if mark.wrote is not None:
        # Asked after the status, in a statement of its own: one snapshot for both may be older
        # than the COMMIT that the status knows of, and a committed write looked as if never made.
        insert, first = mark.wrote
        if await connection.fetchval(insert.found, first):
            return True
        if status == "committed":
            # The id is another transaction's.
            return False
    if status in ("aborted", "never"):
        return False
    if status == "committed" and ran_on:
        return True
    raise unknown()


async def _status(connection: Connection, mark: Mark) -> tuple[Status, bool]:
    try:
        row = await connection.fetchrow(_STATUS, mark.xid, mark.began, mark.timeline)
    except asyncpg.InvalidParameterValueError:
        # The id lies ahead: after a crash or a failover, nobody has had it yet.
        return "never", False
    return row["status"], bool(row["ran_on"])


async def _confirmed(connection: Connection) -> bool:
    """Whether a later COMMIT comes back: what is before it in the log has then arrived, too."""
    await connection.execute("begin")
    await connection.execute(_MESSAGE)
    return await commit(connection)


def unknown() -> OutcomeUnknown:
    """Nobody can say."""
    return OutcomeUnknown(
        "connection", "PostgreSQL: the connection was lost during COMMIT; its fate is unknown"
    )
