"""Starts on servers that others run: what serves, and the one line of what does not."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import count
from urllib.parse import quote, urlsplit

import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.postgres.first_session import shared
from outbox.errors import CannotStart
from outbox.ids import Ids
from tests.support.databases import SOURCES, PostgresServer, with_role

_numbers = count(1)


async def start(url: str, direct_url: str = "") -> str:
    """Start as a server does; return `serves`, or the line of the refusal."""
    try:
        db = await database.open(url, clock=SystemClock(), ids=Ids(), direct_url=direct_url)
        try:
            await migrate(db, SOURCES)
        finally:
            await db.close()
    except CannotStart as refused:
        return str(refused)
    return "serves"


@dataclass(frozen=True)
class Case:
    """`setup` runs as an administrator in an empty database; R and D stand for role and database.

    `says` are words of the one line, without any it serves.
    """

    name: str
    setup: str = ""
    says: tuple[str, ...] = ()
    query: str = ""
    migrated: bool = False
    """Whether an administrator has made the tables."""
    after: str = ""
    """Statements once the tables are there."""


DML = "grant select, insert, update, delete on all tables in schema public to R"
FORMER = "delete from schema_migrations where component = 'gateway' and number > 1"
STARTS = (
    Case("owner", "alter database D owner to R"),
    Case("create granted", "grant create on schema public to R"),
    Case("schema of the role's name", "create schema R authorization R"),
    Case("schema named in the URL", "create schema b authorization R", query="search_path=b"),
    Case(
        "schema named in the options of the URL", "create schema b authorization R",
        query="options=" + quote("-c search_path=b"),
    ),
    Case(
        "schema that needs quotes",
        'create schema "Loja Nº 1" authorization R; alter role R set search_path = "Loja Nº 1"',
    ),
    Case("no TEMP", "alter database D owner to R; revoke temp on database D from public"),
    Case("no CREATE", "", ("grant usage, create on schema public to R", "in this database")),
    Case(
        "no USAGE", "revoke all on schema public from public",
        ("may not use the schema public", "grant usage, create on schema public to R"),
    ),
    Case(
        "USAGE without CREATE of another schema", "create schema b; grant usage on schema b to R",
        ("grant usage, create on schema b to R",), query="search_path=b",
    ),
    Case(
        "empty search_path", "alter role R set search_path = ''",
        ("search_path of the role R is empty", "set search_path = public"),
    ),
    Case(
        "search_path of no schema", "alter role R set search_path = shop, other",
        ("search_path is shop, other", "create schema shop authorization R"),
    ),
    Case(
        "read-only role", "alter role R set default_transaction_read_only = on",
        ("alter role R set default_transaction_read_only = off",),
    ),
    Case(
        "read-only database", "alter database D set default_transaction_read_only = on",
        ("alter database D set default_transaction_read_only = off",),
    ),
    Case(
        "read-only role in the database",
        "alter role R in database D set default_transaction_read_only = on",
        ("alter role R in database D set default_transaction_read_only = off",),
    ),
    Case(
        "read-only URL", "", ("remove default_transaction_read_only from database.url",),
        query="default_transaction_read_only=on",
    ),
    Case(
        "no CONNECT", "revoke connect on database D from public",
        ("grant connect on database", "owner of the database"),
    ),
    Case("no LOGIN", "alter role R nologin", ("it needs LOGIN",)),
    Case("no connection of the role", "alter role R connection limit 0", ("no free connection",)),
    Case(
        "no connection of the database", "alter database D connection limit 0",
        ("no free connection", "raise the limit"),
    ),
    Case(
        "closed database", "update pg_database set datallowconn = false where datname = 'D'",
        ("PostgreSQL refuses the connection",),
    ),
    Case(
        "tables of another role", says=("may not use the table", DML + "$"),
        migrated=True,
    ),
    Case("tables of another role, granted", migrated=True, after=DML),
    Case(
        "a table that was forgotten in the grant", migrated=True,
        after=f"{DML}; revoke delete on webhooks from R", says=("the table webhooks, which",),
    ),
    Case(
        "new tables of other programs beside ours", migrated=True,
        after=f"{DML}; create table theirs (); create role theirs_D; "
        "alter table theirs owner to theirs_D; revoke all on theirs from R",
    ),
    Case(
        "tables of another role that need a change", migrated=True, after=f"{DML}; {FORMER}",
        says=("the schema needs a change that this role may not make", "run `carteiro migrate`"),
    ),
    Case(
        "a schema of the role's name that came later", migrated=True,
        after=f"{DML}; create schema R authorization R",
        says=("the tables are in the schema public", "set search_path = public"),
    ),
    Case(
        "a second schema before the first", migrated=True, query="search_path=b,public",
        after=f"{DML}; create schema b authorization R", says=("the tables are in the schema",),
    ),
    Case("no such database", says=("no such database", "createdb"), query="dbname=nowhere"),
    Case("no such role", says=("it needs LOGIN",), query="user=nobody_at_all"),
    Case(
        "nobody takes writes", "alter role R set default_transaction_read_only = on",
        ("no host is what target_session_attrs asks for",),
        query="target_session_attrs=read-write",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """An empty database and a role without any right."""

    admin: str
    role: str

    @property
    def database(self) -> str:
        return urlsplit(self.admin).path[1:]

    async def run(self, statements: str) -> None:
        """Run statements as an administrator, of a database that nobody may enter on another."""
        connection = await asyncpg.connect(self.admin)
        try:
            await connection.execute(f"select;{self.named(statements)}")
        finally:
            await connection.close()

    def named(self, text: str) -> str:
        return re.sub(r"\bR\b", self.role, re.sub(r"\bD\b|(?<=theirs_)D\b", self.database, text))

    def url(self, query: str) -> str:
        url = with_role(self.admin, self.role)
        # The path of the URL would win over the query.
        if query.startswith("dbname="):
            url = url.replace(f"/{self.database}", "", 1)
        if query.startswith("user="):
            url = url.replace(f"{self.role}:{self.role}@", "", 1)
        return url + (("&" if "?" in url else "?") + query if query else "")


@pytest.fixture
async def place(postgres_server: PostgresServer, case: Case) -> AsyncIterator[Place]:
    make = postgres_server.fresh if case.migrated else postgres_server.empty
    place = Place(await make(), f"r_{os.getpid()}_{next(_numbers)}")
    await place.run("create role R login password 'R'")
    yield place
    await postgres_server.drop(place.admin)
    server = await asyncpg.connect(await postgres_server.url())
    for role in (place.role, f"theirs_{place.database}"):
        await server.execute(f"drop role if exists {role}")
    await server.close()


@pytest.mark.parametrize(
    "case",
    [
        # Making all tables takes a while.
        pytest.param(case, marks=[] if case.says or case.migrated else [pytest.mark.proof])
        for case in STARTS
    ],
    ids=lambda case: case.name,
)
async def test_a_start_serves_or_says_what_to_run(place: Place, case: Case) -> None:
    await place.run(f"{case.setup};{case.after}")
    said = await start(place.url(case.query))
    assert "\n" not in said
    if not case.says:
        assert said == "serves"
    for words in case.says:
        assert re.search(re.escape(place.named(words)).replace(r"\$", "$"), said), said
    assert f"{place.role}:{place.role}" not in said


@pytest.mark.parametrize(
    ("host", "past"),
    [
        ("ep-a-1-pooler.eu-central-1.aws.neon.tech", "ep-a-1.eu-central-1.aws.neon.tech"),
        ("aws-0-eu-central-1.pooler.supabase.com:6543", "port 5432 of aws-0"),
        ("crm.proxy-abc.eu-west-1.rds.amazonaws.com", "not of RDS Proxy"),
        ("bouncer:6432", "PostgreSQL itself, or use"),
    ],
)
def test_a_hosted_pooler_has_a_way_past_it(host: str, past: str) -> None:
    line = shared("database.url", f"postgresql://ana:se%40cret@{host}/crm")
    assert "set database.direct_url" in line
    assert past in line
    assert "cret" not in line
