"""The connections to PostgreSQL that a node needs, and what the server allows."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.server.config import Config
from gateway.server.telemetry import logs
from outbox.database.transaction import Database, Tx

# For superusers neither the limits of roles and databases nor reserved connections count.
_ALLOWED = """
select name, allowed from (
  select 'max_connections' as name, cast(current_setting('max_connections') as bigint)
    - case when r.rolsuper then 0 else cast(current_setting('superuser_reserved_connections')
      as bigint) + cast(coalesce(current_setting('reserved_connections', true), '0') as bigint)
      end as allowed
  from pg_roles r where r.rolname = current_user
  union all
  select 'the connection limit of the role ' || rolname, rolconnlimit from pg_roles
  where rolname = current_user and rolconnlimit >= 0 and not rolsuper
  union all
  select 'the connection limit of the database ' || d.datname, d.datconnlimit
  from pg_database d, pg_roles r
  where d.datname = current_database() and d.datconnlimit >= 0
    and r.rolname = current_user and not r.rolsuper
) limits order by allowed, name limit 1
"""
_OTHERS = "select count(*) as n from nodes where alive_until > due_now()"


def connections(config: Config) -> Mapping[str, int]:
    """Return the maximum number of PostgreSQL connections by purpose; empty on SQLite.

    Of several processes, one has the drain and leads. Those of a pooler are not the server's.
    """
    if config.database.url.startswith("sqlite:"):
        return {}
    count = config.server.processes
    return {
        "requests": count * config.database.pool_size, "group commits": count * 2,
        "the drain": 2, "its lease": 1, "signals": count, "the leader's lock": 1,
    }  # fmt: skip


async def warn_of_few(config: Config, db: Database) -> None:
    """Warn when the nodes together may want more connections than they can have."""
    needed = sum(connections(config).values())
    if db.engine == "sqlite" or config.database.direct_url:
        # A pooler makes do with what it has.
        return
    limit, allowed, others = await db.read(_limits)
    if (others + 1) * needed > allowed:
        logs.logger().warning(
            "few_connections", allowed=allowed, limit=limit, needed=needed, nodes=others + 1,
            mend="raise the limit, or lower database.pool_size; units wait for a free connection",
        )  # fmt: skip


async def _limits(tx: Tx) -> tuple[str, int, int]:
    row, others = await tx.one(_ALLOWED), await tx.one(_OTHERS)
    assert row is not None
    assert others is not None
    return row["name"], row["allowed"], others["n"]
