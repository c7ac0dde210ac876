"""The warning about fewer connections to PostgreSQL than the nodes together may want."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest
from structlog.testing import capture_logs

from gateway.server.config import Config, Database
from gateway.server.database_connections import warn_of_few
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.support.databases import ORDINARY, PostgresServer

NODES = (
    "insert into nodes (id, epoch, started_at, alive_until)"
    " select 'n' || n, 1, 0, due_now() + 60000000 * sign(100 - n) from generate_series(1, 150) n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "settings", "told"),
    [
        ("select", {}, None),
        ("alter database {} connection limit 17", {}, None),
        (
            "alter database {} connection limit 16", {},
            (16, "the connection limit of the database {}", 17, 1),
        ),
        ("alter database {} connection limit 16", {"direct_url": "postgresql://h/d"}, None),
        ("alter database {} connection limit 16", {"pool_size": 9}, None),
        # Of 500 connections superusers have three; some of these nodes are dead.
        (NODES, {}, (497, "max_connections", 17, 100)),
        (NODES, {"pool_size": 2}, (497, "max_connections", 9, 100)),
    ],
)  # fmt: skip
async def test_it_names_the_narrowest_limit(
    postgres_server: PostgresServer, statement: str, settings: dict[str, Any], told: object
) -> None:
    url = await postgres_server.fresh(ORDINARY)
    name = url.partition("?")[0].rpartition("/")[2]
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    admin = await asyncpg.connect(url.replace(f"{ORDINARY}:{ORDINARY}@", "postgres@"))
    await admin.execute(statement.format(name))
    await admin.close()
    with capture_logs() as lines:
        await warn_of_few(Config(database=Database(url=url, **settings)), db)
    await db.close()
    await postgres_server.drop(url)
    said = [tuple(line[key] for key in ("allowed", "limit", "needed", "nodes")) for line in lines]
    if isinstance(told, tuple):
        told = tuple(one.format(name) if isinstance(one, str) else one for one in told)
    assert said == ([] if told is None else [told])
