"""Look at the first session of a process: where it is, what it may do, and what stands before it.

What the operator has to mend is said in one line, with the statement and who runs it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from outbox.database.postgres.faults import is_full
from outbox.database.postgres.hosts import Connection, Hosts
from outbox.errors import CannotStart

ASK_SECONDS = 2.0
ENCODING = "UTF8"
SUPABASE_PORT = 6543
"""At which its pooler gives each transaction another session."""
_LOOK = """
select pg_backend_pid() as pid, cast(current_user as text) as role,
  cast(current_database() as text) as database, current_setting('server_encoding') as encoding,
  cast(current_schema() as text) as schema,
  pg_postmaster_start_time() as began, pg_is_in_recovery() as standby,
  current_setting('default_transaction_read_only') = 'on' as read_only,
  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as creates,
  ledger.schema as installed, ledger.owner, (
    select cast(c.relname as text) from pg_class c
    where c.relnamespace = ledger.place and c.relowner = ledger.holder and c.relkind = 'r'
      and not (has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'INSERT')
        and has_table_privilege(c.oid, 'UPDATE') and has_table_privilege(c.oid, 'DELETE'))
    order by c.relname limit 1) as denied
from (values (to_regclass('schema_migrations'))) found(ledger)
left join lateral (
  select cast(n.nspname as text) as schema, n.oid as place, c.relowner as holder,
    cast(pg_get_userbyid(c.relowner) as text) as owner
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = found.ledger
) ledger on true
"""
_PID = "select pg_backend_pid()"
# Asked only when there is a fault to describe.
_PATH = """
select current_setting('search_path') as path, (
  select cast(nspname as text) from pg_namespace
  where nspname = any (select case trim(both ' "' from one) when '$user' then current_user
      else trim(both ' "' from one) end
    from unnest(string_to_array(current_setting('search_path'), ',')) as parts(one))
  order by nspname limit 1) as closed
"""
_SOURCE = "select source from pg_settings where name = 'default_transaction_read_only'"
_POOLER_ERRORS = (
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
    asyncpg.ProtocolViolationError,
    asyncpg.FeatureNotSupportedError,
)
"""What a statement meets on a session that others share."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the first session has found. None stands for no schema, and for no installation."""

    pid: int
    role: str
    database: str
    encoding: str
    schema: str | None
    began: datetime
    """When the server started: another one of the same name has another time."""
    standby: bool
    read_only: bool
    creates: bool
    installed: str | None
    owner: str | None
    denied: str | None


async def look(connection: Connection, hosts: Hosts) -> Found:
    """Return what there is, by one statement.

    Raise CannotStart behind a pooler of transactions, and for tables in another schema than the one
    in which names are made.
    """
    try:
        # In a transaction: a pooler may send the parts of one statement to two sessions.
        await connection.execute("begin read only")
        row = await connection.fetchrow(_LOOK)
        await connection.execute("commit")
    except (*_POOLER_ERRORS, asyncpg.PostgresConnectionError) as error:
        if not isinstance(error, _POOLER_ERRORS) and "statement pooling" not in str(error):
            raise
        raise CannotStart(shared(hosts)) from error
    state = Found(**row)
    if state.installed is not None and state.installed != state.schema:
        role, database, schema = map(quoted, (state.role, state.database, state.schema or ""))
        raise CannotStart(
            f"the tables are in the schema {quoted(state.installed)}, but search_path names "
            f"{schema} first, where new ones would go; run: alter role {role} in database "
            f"{database} set search_path = {quoted(state.installed)}; or {schema} alone for an "
            "installation of its own"
        )
    return state


async def must_keep_sessions(
    first: Connection, second: Callable[[], Awaitable[Connection]], hosts: Hosts
) -> None:
    """Raise CannotStart unless each connection has a session of its own, over its transactions.

    Two statements on the first, two on a second connection, whose open transaction takes the
    session that a pooler would give the first one again.
    """
    try:
        second_connection = await second()
    except asyncpg.PostgresError as error:
        if is_full(error):
            # A server with so few connections for us still tells by the first one.
            return
        raise
    try:
        pid = await first.fetchval(_PID)
        await second_connection.execute("begin")
        try:
            keeps = await second_connection.fetchval(_PID, timeout=ASK_SECONDS) != pid
        except TimeoutError:
            # A pooler that keeps sessions has no second one; one of transactions gives it at once.
            return
        # Where there is one session for all, the first connection would wait for it.
        keeps = keeps and await first.fetchval(_PID) == pid
    except _POOLER_ERRORS as error:
        raise CannotStart(shared(hosts)) from error
    finally:
        second_connection.terminate()
    if not keeps:
        raise CannotStart(shared(hosts))


def shared(hosts: Hosts) -> str:
    """Return the line about a pooler that gives each transaction another session."""
    setting = hosts.setting
    says = f"{setting} leads to a pooler that gives each transaction another session, such as "
    says += "PgBouncer with pool_mode = transaction: "
    past = _past_pooler(hosts)
    if setting == "database.direct_url":
        return f"{says}it must lead to PostgreSQL itself{past}, or to a pooler in session mode"
    return (
        f"{says}set database.direct_url to the URL of PostgreSQL itself{past}, or use a pooler in "
        "session mode"
    )


def _past_pooler(hosts: Hosts) -> str:
    """Return how a hosted pooler's own address tells the way past it; empty for others."""
    for name, port in hosts.url.hosts:
        host = name.lower()
        if "-pooler." in host:
            return f" (at Neon {host.replace('-pooler.', '.', 1)}, without -pooler)"
        if host.endswith(".pooler.supabase.com") and port == SUPABASE_PORT:
            return f" (at Supabase port 5432 of {host} keeps sessions)"
        if ".proxy-" in host and "rds.amazonaws.com" in host:
            return " (at Amazon the endpoint of the database, not of RDS Proxy)"
    return ""


async def must_serve(connection: Connection, found: Found, setting: str) -> None:
    """Raise CannotStart with what the operator has to mend before this session can serve."""
    role, database, schema = map(quoted, (found.role, found.database, found.schema or ""))
    if found.standby:
        raise CannotStart(
            f"{setting} leads to a standby, which takes no writes; give the address of the "
            "primary, or those of both and ?target_session_attrs=read-write"
        )
    must_be_utf_8(found)
    if found.read_only:
        raise CannotStart(await _read_only(connection, role, database, setting))
    if found.schema is None:
        raise CannotStart(await _no_schema(connection, role, database))
    if found.installed is None and not found.creates:
        raise CannotStart(
            f"the role {role} may not create tables in the schema {schema} of the database "
            f"{database}; let its owner or an administrator run, in this database: "
            f"grant usage, create on schema {schema} to {role}"
        )
    if found.denied is not None:
        owner = quoted(found.owner or "")
        raise CannotStart(
            f"the role {role} may not use the table {quoted(found.denied)}, which {owner} owns; "
            f"let {owner} or an administrator run: grant select, insert, update, delete on all "
            f"tables in schema {schema} to {role}"
        )


def must_be_utf_8(found: Found) -> None:
    """Raise CannotStart for an encoding that cannot store every character."""
    if found.encoding != ENCODING:
        raise CannotStart(
            f"the PostgreSQL database {found.database} has the encoding {found.encoding}, which "
            "cannot store every character, such as emoji; create another one with `createdb "
            "--encoding=UTF8 --locale=C --template=template0 NAME`, bring the data there by "
            "`carteiro backup` and `carteiro restore`, and set database.url to it"
        )


async def _read_only(connection: Connection, role: str, database: str, setting: str) -> str:
    source: str = await connection.fetchval(_SOURCE)
    off = "set default_transaction_read_only = off"
    mend = {
        "client": f"remove default_transaction_read_only from {setting}",
        "user": f"run: alter role {role} {off}",
        "database": f"run: alter database {database} {off}",
        "database user": f"run: alter role {role} in database {database} {off}",
    }.get(source, f"run as an administrator: alter role {role} {off}")
    return f"transactions of the role {role} are read-only by default; {mend}"


async def _no_schema(connection: Connection, role: str, database: str) -> str:
    row = await connection.fetchrow(_PATH)
    path, closed = row["path"], row["closed"]
    if closed is not None:
        name = quoted(closed)
        return (
            f"the role {role} may not use the schema {name} of the database {database}; let its "
            f"owner or an administrator run, in this database: grant usage, create on schema "
            f"{name} to {role}"
        )
    if not path.strip(' "'):
        return (
            f"search_path of the role {role} is empty; run: alter role {role} in database "
            f"{database} set search_path = public"
        )
    first = quoted(path.split(",")[0].strip(' "').replace("$user", role))
    return (
        f"search_path is {path}, and the database {database} has no such schema; let the owner of "
        f"the database run: create schema {first} authorization {role}; or correct search_path"
    )


def quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and name == name.lower()
    return name if plain and not name[:1].isdigit() else '"' + name.replace('"', '""') + '"'
