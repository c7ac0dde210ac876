"""One list of starts in foreign environments: each serves, or one line names setting and mend.

Each start runs `check-config`, and then a command that opens the database as `serve` does. To add
one, add a line to its list: settings are named without `CARTEIRO_`, `{…}` are the places of WORLD.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socketserver
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import asyncpg
import pytest

from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.process import command

URL = "DATABASE__URL"
SECRETS = ("hunter2", "tail99")
"""Parts of each password, before and behind a character that must be encoded."""


class Start(NamedTuple):
    """The settings of a start and what it says; it serves if that is nothing."""

    settings: Mapping[str, str | bytes]
    says: tuple[str, ...] = ()
    where: str = "config"
    """A wrong setting is refused by check-config too; what is wrong outside, only by the server."""
    made: Callable[[Path], object] = bool


def url(text: str, *says: str, **more: Any) -> Start:
    return Start({URL: text}, says and ("database.url:", *says), **more)


def wrong(text: str, *says: str) -> Start:
    """A URL of PostgreSQL that is refused before anything connects."""
    return url(f"postgresql://{text}", *says)


def file(**files: bytes) -> Callable[[Path], object]:
    def made(folder: Path) -> None:
        for name, content in files.items():
            (folder / name).write_bytes(content)

    return made


def folder(name: str) -> Callable[[Path], object]:
    return lambda place: (place / name).mkdir()


def variable(name: str, value: str | bytes, *says: str) -> Start:
    return Start({name: value}, says)


TOKEN = "METRICS__TOKEN_FILE"
UTF_16 = 'logging.level = "info"\n'.encode("utf-16")
MARKED = b"\xef\xbb\xbf[server]\r\nport = 8081\r\n"
ENCODE = "percent-encode these characters"

URLS = {
    # PostgREST #1531, Supabase's CLI #155, pgbackweb #3: passwords as a generator makes them.
    "password-hash": wrong("u:hunter2#tail99@db/crm", ENCODE, "# as %23"),
    "password-slash": wrong("u:hunter2/tail99@db/crm", ENCODE, "/ as %2F"),
    "password-question": wrong("u:hunter2?tail99@db/crm", ENCODE, "? as %3F"),
    "password-pairs": wrong("u:hunter2?a=1&tail99@db/crm", ENCODE, "? as %3F"),
    "password-at": wrong("u:hunter2@tail99@db/crm", ENCODE, "@ as %40"),
    "password-bracket": wrong("u:hunter2[tail99@db/crm", ENCODE, "[ as %5B"),
    "password-percent": wrong("u:hunter2%tail99@db/crm", ENCODE, "% as %25"),
    "password-several": wrong("u:hunter2@/#tail99@db/crm", "@ as %40, / as %2F, # as %23"),
    # Of Supabase's page, where nobody replaced the words in brackets.
    "password-placeholder": wrong("u:[hunter2]@db.x.supabase.co:5432/postgres", "[ as %5B"),
    "password-latin-1": wrong("u:hunter2%E9tail99@db/crm", "UTF-8", "%C3%A9"),
    # deis/workflow #354: a secret of Kubernetes that ends with a line break, put into a URL.
    "password-newline": wrong("u:hunter2\ntail99@db/crm", "line break", "%0A"),
    "password-without-host": wrong("u:hunter2tail99", "ports", "1 to 65535"),
    "password-parameter": wrong("db/crm?user=u&password=hunter2&tail99=1", "& in a value as %26"),
    "unreplaced-shell": wrong("u:${DB_PASSWORD}@db/crm", "a variable that nobody replaced"),
    "unreplaced-kubernetes": wrong("u:hunter2@$(DB_HOST)/crm", "a variable that nobody replaced"),
    "placeholder-host": wrong("u:hunter2@<host>/crm", "a host name or an address"),
    "port-word": wrong("u:hunter2@db:port/crm", "ports", "1 to 65535"),
    "port-too-large": wrong("u@db:65536/crm", "1 to 65535"),
    "ports-of-one-too-few": wrong("u@one,two/crm?port=1,2,3", "3 ports for 2 hosts"),
    "host-empty": wrong("u@one,,two/crm", "a host name or an address"),
    "ipv6-without-brackets": wrong("u@::1/crm", "in brackets, such as [::1]:5432"),
    "parameters-without-value": wrong("u@db/crm?sslmode", "name=value"),
    # Prisma, JDBC, Rails, node-postgres, SQLAlchemy, Vercel's Supabase, pgx.
    "prisma-schema": wrong("u@db/crm?schema=public", "schema", "options=-csearch_path%3Dname"),
    "prisma-pgbouncer": wrong("u@db:6543/crm?pgbouncer=true", "pgbouncer", "database.direct_url"),
    "prisma-limit": wrong("u@db/crm?connection_limit=5", "connection_limit", "database.pool_size"),
    "jdbc-schema": wrong("db/crm?currentSchema=crm", "currentSchema", "options="),
    "rails-pool": wrong("u@db/crm?pool=5", "pool", "database.pool_size"),
    "rails-statements": wrong("u@db/crm?prepared_statements=false", "prepared_statements"),
    "node-no-verify": wrong("u@db/crm?sslmode=no-verify", "sslmode", "verify-full"),
    "sqlalchemy-cache": wrong("u@db/crm?prepared_statement_cache_size=0", "leave it out"),
    "vercel-supa": wrong("u@db/crm?supa=base-pooler.x", "supa", "leave it out"),
    "pgx-pool": wrong("u@db/crm?pool_max_conns=10", "pool_max_conns", "database.pool_size"),
    "session-attributes": wrong("u@db/crm?target_session_attrs=readwrite", "read-write, primary"),
    "session-standby": wrong("u@db/crm?target_session_attrs=standby", "read-write, primary"),
    "gss-only": wrong("u@db/crm?gssencmode=require", "gssencmode", "TLS"),
    "promise-not-kept": wrong("u@db/crm?require_auth=scram-sha-256", "require_auth", "leave it"),
    "service-unknown": wrong("/crm?service=shop", "a service that is not in", ".pg_service.conf"),
    "driver-asyncpg": url("postgresql+asyncpg://u:hunter2@db/crm", "without the name of a driver"),
    "driver-psycopg": url("postgresql+psycopg2://u:hunter2@db/crm", "without the name"),
    "driver-aiosqlite": url("sqlite+aiosqlite:///x.db", "without the name of a driver"),
    "mysql": url("mysql://u:hunter2@db/crm", "postgresql://", "not supported"),
    "jdbc": url("jdbc:postgresql://db/crm?password=hunter2", "without jdbc:"),
    "keywords": url("host=db dbname=crm password=hunter2", "postgresql://", "name=value"),
    "npgsql": url("Server=db;Database=crm;Password=hunter2", "postgresql://", "name=value"),
    # Neon's page offers a command to copy.
    "psql-command": url("psql 'postgresql://u:hunter2@db/crm'", "must be sqlite:///"),
    "one-slash": url("postgresql:/u:hunter2@db/crm", "two slashes"),
    "empty": url("", "must be sqlite:///"),
    "memory": url("sqlite:///:memory:", "must name a file"),
    "memory-short": url("sqlite://", "must name a file"),
    "memory-shared": url("sqlite:///file::memory:?cache=shared", "must name a file"),
    "file-uri": url("file:./dev.db", "must name a file"),
    "two-slashes": url("sqlite://data/x.db", "three slashes"),
    "no-slash": url("sqlite:x.db", "three slashes"),
    "windows-path": url("sqlite:///C:\\data\\x.db", "must be a path with /"),
    "windows-slash": url("sqlite:///C:/data/x.db", "must be a path with /"),
    "home-sign": url("sqlite:///~/x.db", "~ is not replaced"),
    "folder-slash": url("sqlite:///data/", "must name a file, not a folder"),
    "sqlite-parameters": url("sqlite:///x.db?mode=rwc", "without parameters"),
    "pg-host-wrong": Start({URL: "postgresql:///crm", "PGHOST": "<db>"}, ("also check PGHOST",)),
    "pg-port-wrong": Start(
        {URL: "postgresql://db/crm", "PGPORT": "tcp://10.0.0.1:5432"}, ("also check PGPORT",)
    ),
}  # fmt: skip

TEXTS = {
    "toml-mark": Start({"CONFIG": "c.toml"}, made=file(**{"c.toml": MARKED})),
    "toml-utf-16": Start({"CONFIG": "c.toml"}, made=file(**{"c.toml": UTF_16})),
    "toml-latin-1": Start(
        {"CONFIG": "c.toml"}, ("c.toml", "line 2", "save it as UTF-8"),
        made=file(**{"c.toml": b"[server]\n# endere\xe7o\n"}),
    ),
    "toml-utf-16-without-mark": Start(
        {"CONFIG": "c.toml"}, ("c.toml", "save it as UTF-8"),
        made=file(**{"c.toml": "[server]\n".encode("utf-16-le")}),
    ),
    "token-mark": Start({TOKEN: "t"}, made=file(t=b"\xef\xbb\xbfhunter2\r\n")),
    "token-utf-16": Start({TOKEN: "t"}, made=file(t="hunter2\r\n".encode("utf-16"))),
    "token-newlines": Start({TOKEN: "t"}, made=file(t=b"  hunter2 \n\n")),
    "token-quotes": Start(
        {TOKEN: "t"}, ("metrics.token", "in quotes", f"CARTEIRO_{TOKEN}"),
        made=file(t=b'"hunter2"\n'),
    ),
    "token-two-lines": Start(
        {TOKEN: "t"}, ("metrics.token", "one line", f"CARTEIRO_{TOKEN}"),
        made=file(t=b"hunter2\ntail99\n"),
    ),
    "token-empty": Start(
        {TOKEN: "t"}, ("metrics.token", "empty", f"CARTEIRO_{TOKEN}"), made=file(t=b"\n")
    ),
    "token-latin-1": Start(
        {TOKEN: "t"}, ("metrics.token", "not UTF-8", f"CARTEIRO_{TOKEN}"),
        made=file(t=b"hunter2\xe9"),
    ),
    "token-endless": variable(TOKEN, "/dev/zero", "metrics.token", "1 MiB"),
    "token-folder": Start({TOKEN: "t"}, ("metrics.token", "Is a directory"), made=folder("t")),
    "token-of-no-file": variable(TOKEN, "", "metrics.token", "names no file"),
    # docker run --env-file keeps quotes; a file of Windows ends lines with \r.
    "quotes-kept": variable("METRICS__TOKEN", "'hunter2'", "metrics.token", "in quotes"),
    "quotes-of-a-page": variable("METRICS__TOKEN", "“hunter2”", "metrics.token", "in quotes"),
    "quotes-number": variable("SERVER__PORT", '"8080"', "server.port", "in quotes"),
    "quotes-url": Start({URL: '"sqlite:///{db}"'}, ("database.url", "in quotes")),
    "quotes-json": variable("CONNECT__APPS", "'[]'", "connect.apps", "in quotes"),
    "carriage-return": variable("SERVER__PORT", "8080\r"),
    "mark-in-variable": variable("SERVER__PORT", "\ufeff8080"),
    "variable-latin-1": variable("MAIL__PASSWORD", b"hunter2\xe9", "mail.password", "not UTF-8"),
    "variable-empty": variable("SERVER__PORT", "", "server.port", "a whole number"),
    "host-brackets": variable("SERVER__HOST", "[::1]"),
    "host-star": variable("SERVER__HOST", "*"),
    "listen-empty": variable("SERVER__HOST", "", "server.host", "127.0.0.1", "0.0.0.0"),
    "listen-brackets": variable("SERVER__HOST", "[]", "server.host", "127.0.0.1"),
    "host-with-port": variable("SERVER__HOST", "0.0.0.0:8080", "server.host", "server.port"),
    "host-url": variable("SERVER__HOST", "http://0.0.0.0", "server.host", "server.port"),
}  # fmt: skip


def database_at(name: str) -> Callable[[Path], object]:
    """Move the database of the test to a name."""
    return lambda place: (place / "one.db").rename(place / name)


def link(place: Path) -> None:
    (place / "link.db").symlink_to("one.db")


def copied_link(place: Path) -> None:
    link(place)
    (place / "one.db.copied").write_text("one.db was copied to postgresql://other/db\n")


def utf_16(place: Path) -> None:
    with closing(sqlite3.connect(place / "16.db")) as db:
        db.execute("pragma encoding = 'UTF-16'")
        db.execute("create table notes (text)")


PATHS = {
    "file": url("sqlite:///{here}/one.db"),
    "upper-case": url("SQLite:///{here}/one.db"),
    "slashes": url("sqlite:///{here}//./one.db"),
    "link": url("sqlite:///{here}/link.db", made=link),
    "spaces-and-accents": url("sqlite:///{here}/a ç?.db", made=database_at("a ç?.db")),
    "percent-is-kept": url("sqlite:///{here}/a%20b.db", made=database_at("a%20b.db")),
    "hard-link": Start(
        {URL: "sqlite:///{here}/two.db"}, ("two.db", "hard links", "delete all but one"),
        made=lambda place: os.link(place / "one.db", place / "two.db"),
    ),
    "folder": Start(
        {URL: "sqlite:///{here}/data"}, ("is a folder", "database.url"), made=folder("data")
    ),
    "no-folder": Start({URL: "sqlite:///{here}/no/x.db"}, ("there is no folder", "database.url")),
    "dangling": Start(
        {URL: "sqlite:///{here}/x.db"}, ("there is no folder", "/no;", "database.url"),
        made=lambda place: (place / "x.db").symlink_to("no/x.db"),
    ),
    "loop": Start(
        {URL: "sqlite:///{here}/x.db"}, ("Too many levels of symbolic links", "database.url"),
        made=lambda place: (place / "x.db").symlink_to("x.db"),
    ),
    "pipe": Start(
        {URL: "sqlite:///{here}/pipe"}, ("is not a file", "database.url"),
        made=lambda place: os.mkfifo(place / "pipe"),
    ),
    "no-database": Start(
        {URL: "sqlite:///{here}/x.db"}, ("x.db: file is not a database", "database.url"), "server",
        file(**{"x.db": b"no database " * 99}),
    ),
    "utf-16": Start(
        {URL: "sqlite:///{here}/16.db"}, ("UTF-16le", "carteiro restore"), "server", utf_16
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    address = asyncio.run(SqliteFiles().fresh(tmp_path_factory.mktemp("template")))
    return Path(address.removeprefix("sqlite:///"))


def run(start: Start, folder: Path, places: Mapping[str, str]) -> None:
    """Start in a folder, and compare what it says."""
    settings = {}
    for name, value in start.settings.items():
        text = os.fsdecode(value) if isinstance(value, bytes) else value
        for place, is_ in places.items():
            text = text.replace(f"{{{place}}}", is_)
        settings[name if name.startswith("PG") else f"CARTEIRO_{name}"] = text
    settings.setdefault(f"CARTEIRO_{URL}", f"sqlite:///{folder}/one.db")
    start.made(folder)
    checked = command("check-config", folder=folder, **settings)
    opened = command("migrate", folder=folder, **settings)
    for done in (checked, opened):
        said = done.stdout + done.stderr
        assert not any(secret in said for secret in SECRETS), said
        assert "internal error" not in said
        assert "Traceback" not in said
    if start.where == "server" or not start.says:
        assert checked.returncode == 0, checked.stderr
    else:
        assert checked.returncode in (1, 2)
        assert checked.stderr == opened.stderr
    if start.says:
        assert opened.returncode in (1, 2)
        [line] = opened.stderr.splitlines()
        assert line.startswith("carteiro: ")
        for word in start.says:
            assert word in line
    else:
        assert opened.returncode == 0, opened.stderr


@pytest.mark.parametrize("name", [*URLS, *TEXTS, *PATHS])
def test_a_start(name: str, tmp_path: Path, template: Path) -> None:
    start = (URLS | TEXTS | PATHS)[name]
    (tmp_path / "one.db").write_bytes(template.read_bytes())
    run(start, tmp_path, {"here": str(tmp_path)})


SSL_REQUEST = 80_877_103


class _Answer(socketserver.BaseRequestHandler):
    """A server that ends each start of a connection with one error."""

    def handle(self) -> None:
        code = self.server.code  # type: ignore[attr-defined]
        while len(head := self.request.recv(8)) == 8:
            size, kind = struct.unpack("!ii", head)
            if code == "HTTP":
                self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            elif kind == SSL_REQUEST:
                self.request.sendall(b"N")
                continue
            elif code:
                self.request.recv(size - 8)
                code, _, words = code.partition(" ")
                said = words or "the words of the server"
                fields = f"SFATAL\0VFATAL\0C{code}\0M{said}\0\0".encode()
                self.request.sendall(b"E" + struct.pack("!i", len(fields) + 4) + fields)
            return


@pytest.fixture(scope="module")
def answering() -> Iterator[Callable[[str], str]]:
    """Return the port of a server that answers an SQLSTATE and text; without one it hangs up."""
    servers = []

    def listens(code: str) -> str:
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Answer)
        server.code = code  # type: ignore[attr-defined]
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return str(server.server_address[1])

    yield listens
    for server in servers:
        server.shutdown()
        server.server_close()


ANSWERS = {
    "wrong-password": ("28P01", "", "the password is wrong", "database.url"),
    "not-let-in": ("28000", "", "pg_hba.conf", "sslmode=require"),
    "no-database": ("3D000", "", "no database crm", "createdb --encoding=UTF8 --owner=u crm"),
    "too-many": ("53300", "", "no free connection", "database.pool_size", "max_connections"),
    "starting": ("57P03", "", "is starting or stopping", "try again"),
    "may-not-connect": ("42501", "", "grant connect on database crm to u"),
    "pooler-parameter": (
        "08P01 unsupported startup parameter: x", "?x=1", "a pooler at", "database.direct_url",
    ),
    "pooler-full": ("08P01 no more connections allowed", "", "no free connection"),
    "pooler-database": ("08P01 no such database: crm", "", "a pooler at", "no such database: crm"),
    "wrong-value": ("22023", "?work_mem=x", "the words of the server", "correct this parameter"),
    "other-tool": ("42704", "?wal_mode=x", "the words of the server", "leave this parameter out"),
    "other-refusal": ("0A000", "", "the words of the server", "database.url"),
    "no-tls": ("28P01", "?sslmode=require", "takes no TLS", "sslmode"),
    "hangs-up": ("", "?sslmode=disable", "not another program", "database.url"),
    "no-postgresql": ("HTTP", "", "not another program", "database.url"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_a_server_that_is_reached_says_what_is_wrong(
    name: str, tmp_path: Path, answering: Callable[[str], str]
) -> None:
    code, more, *says = ANSWERS[name]
    port = answering(code)
    start = url(f"postgresql://u:hunter2@127.0.0.1:{port}/crm{more}", where="server")
    run(start._replace(says=(f"127.0.0.1:{port}", *says)), tmp_path, {})
    done = command("migrate", folder=tmp_path, **{f"CARTEIRO_{URL}": start.settings[URL]})  # type: ignore[arg-type]
    assert "cannot reach" not in done.stderr


UNREACHED = {
    "no-host": ("u:hunter2@db.invalid/crm", "the host db.invalid is not found", "DNS"),
    "no-name": ("u:hunter2@db..example/crm", "the host db..example is not found", "no name of DNS"),
    "long-label": (f"u:hunter2@{'a' * 64}.example/crm", "is not found", "no name of DNS"),
    "refused": ("u:hunter2@127.0.0.1:1/crm", "nothing listens at 127.0.0.1:1", "start the server"),
    "no-socket": ("/crm?host=/nowhere", "there is no socket /nowhere/.s.PGSQL.5432"),
    "each-host": ("u@127.0.0.1:1,db.invalid/crm", "nothing listens at 127.0.0.1:1", "db.invalid"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREACHED)
def test_only_a_server_without_an_answer_cannot_be_reached(name: str, tmp_path: Path) -> None:
    text, *says = UNREACHED[name]
    start = url(f"postgresql://{text}", where="server")
    run(start._replace(says=("cannot reach PostgreSQL: ", "database.url", *says)), tmp_path, {})


class World(NamedTuple):
    """A real server: the folder of its socket, and a migrated database."""

    places: dict[str, str]
    server: PostgresServer


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    server = PostgresServer()

    async def made() -> dict[str, str]:
        address = urlsplit(await server.fresh())
        connection = await asyncpg.connect(await server.url())
        try:
            for encoding in ("LATIN1", "SQL_ASCII"):
                name = f"carteiro_{encoding.lower()}_{os.getpid()}"
                await connection.execute(
                    f"create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' "
                    "template template0"
                )
        finally:
            await connection.close()
        host = parse_qs(address.query)["host"][0]
        return {
            "name": address.path[1:], "socket": host, "encoded": quote(host, safe=""),
            "pid": str(os.getpid()),
        }  # fmt: skip

    places = asyncio.run(made())
    yield World(places, server)

    async def dropped() -> None:
        for name in (
            places["name"], *(f"carteiro_{each}_{os.getpid()}" for each in ("latin1", "sql_ascii"))
        ):  # fmt: skip
            await server.drop(f"postgresql:///{name}")

    asyncio.run(dropped())


ON_POSTGRES = {
    "socket": url("postgresql://postgres@/{name}?host={socket}"),
    "socket-encoded": url("postgres://postgres@{encoded}/{name}"),
    "upper-case": url("PostgreSQL://postgres@{encoded}/{name}"),
    # What Prisma's and Google's pages say for Cloud SQL.
    "socket-beats-host": url("postgresql://postgres:x@localhost/{name}?host={socket}"),
    "names-as-parameters": url("postgresql://?host={encoded}&dbname={name}&user=postgres"),
    "environment": Start(
        {URL: "postgresql:///", "PGHOST": "{socket}", "PGUSER": "postgres", "PGDATABASE": "{name}"}
    ),
    "service": Start({URL: "postgresql://?service=crm", "PGSERVICEFILE": "services"}),
    "first-host-is-gone": url("postgresql://postgres@/{name}?host=/nowhere,{encoded}"),
    # Neon's, Heroku's and RDS' pages, and what administrators add.
    "parameters-of-libpq": url(
        "postgresql://postgres@/{name}?host={socket}&connect_timeout=10&keepalives=1"
        "&keepalives_idle=30&gssencmode=disable&channel_binding=require&application_name=crm"
    ),
    "setting-of-the-server": url("postgresql://postgres@/{name}?host={socket}&work_mem=8MB"),
    "options": url("postgresql://postgres@/{name}?host={socket}&options=-cwork_mem%3D8MB"),
    "writable": url("postgresql://postgres@/{name}?host={socket}&target_session_attrs=primary"),
    "unknown-setting": Start(
        {URL: "postgresql://postgres@/{name}?host={socket}&colour=red"},
        ("colour", "leave this parameter out of database.url"), "server",
    ),
    "no-database": Start(
        {URL: "postgresql://postgres@{encoded}/nothing"},
        ("there is no database nothing", "createdb"), "server",
    ),
    "no-role": Start(
        {URL: "postgresql://nobody_{pid}@{encoded}/{name}"},
        ("refuses the user nobody_", "database.url"), "server",
    ),
    "latin-1": Start(
        {URL: "postgresql://postgres@{encoded}/carteiro_latin1_{pid}"},
        ("the encoding LATIN1", "createdb --encoding=UTF8", "database.url"), "server",
    ),
    "sql-ascii": Start(
        {URL: "postgresql://postgres@{encoded}/carteiro_sql_ascii_{pid}"},
        ("the encoding SQL_ASCII", "createdb --encoding=UTF8", "database.url"), "server",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_POSTGRES)
def test_a_start_on_postgresql(name: str, tmp_path: Path, world: World) -> None:
    start = ON_POSTGRES[name]
    (tmp_path / "services").write_text(
        "[crm]\nuser=postgres\nhost={socket}\ndbname={name}\n".format_map(world.places)
    )
    run(start, tmp_path, world.places)


class Role(NamedTuple):
    """A role of its own in a database of its own.

    `setup` runs as an administrator before; R and D stand for role and database.
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
ROLES = (
    Role("owner", "alter database D owner to R"),
    Role("create granted", "grant create on schema public to R"),
    Role("schema of the role's name", "create schema R authorization R"),
    Role("schema named in the URL", "create schema b authorization R", query="search_path=b"),
    Role(
        "schema named in the options of the URL", "create schema b authorization R",
        query="options=" + quote("-c search_path=b"),
    ),
    Role(
        "schema that needs quotes",
        'create schema "Loja Nº 1" authorization R; alter role R set search_path = "Loja Nº 1"',
    ),
    Role("no TEMP", "alter database D owner to R; revoke temp on database D from public"),
    Role("no CREATE", "", ("grant usage, create on schema public to R", "in this database")),
    Role(
        "no USAGE", "revoke all on schema public from public",
        ("may not use the schema public", "grant usage, create on schema public to R"),
    ),
    Role(
        "USAGE without CREATE of another schema", "create schema b; grant usage on schema b to R",
        ("grant usage, create on schema b to R",), query="search_path=b",
    ),
    Role(
        "empty search_path", "alter role R set search_path = ''",
        ("search_path of the role R is empty", "set search_path = public"),
    ),
    Role(
        "search_path of no schema", "alter role R set search_path = shop, other",
        ("search_path is shop, other", "create schema shop authorization R"),
    ),
    Role(
        "read-only role", "alter role R set default_transaction_read_only = on",
        ("alter role R set default_transaction_read_only = off",),
    ),
    Role(
        "read-only database", "alter database D set default_transaction_read_only = on",
        ("alter database D set default_transaction_read_only = off",),
    ),
    Role(
        "read-only role in the database",
        "alter role R in database D set default_transaction_read_only = on",
        ("alter role R in database D set default_transaction_read_only = off",),
    ),
    Role(
        "read-only URL", "", ("remove default_transaction_read_only from database.url",),
        query="default_transaction_read_only=on",
    ),
    Role(
        "no CONNECT", "revoke connect on database D from public",
        ("grant connect on database", "owner of the database"),
    ),
    Role("no LOGIN", "alter role R nologin", ("it needs LOGIN",)),
    Role("no connection of the role", "alter role R connection limit 0", ("no free connection",)),
    Role(
        "no connection of the database", "alter database D connection limit 0",
        ("no free connection", "raise the limit", "connection limit"),
    ),
    Role(
        "closed database", "update pg_database set datallowconn = false where datname = 'D'",
        ("refuses the connection",),
    ),
    Role(
        "tables of another role", says=("may not use the table", DML),
        migrated=True,
    ),
    Role("tables of another role, granted", migrated=True, after=DML),
    Role(
        "a table that was forgotten in the grant", migrated=True,
        after=f"{DML}; revoke delete on webhooks from R", says=("the table webhooks, which",),
    ),
    Role(
        "new tables of other programs beside ours", migrated=True,
        after=f"{DML}; create table theirs (); create role theirs_D; "
        "alter table theirs owner to theirs_D; revoke all on theirs from R",
    ),
    Role(
        "tables of another role that need a change", migrated=True, after=f"{DML}; {FORMER}",
        says=("the schema needs a change that this role may not make", "run `carteiro migrate`"),
    ),
    Role(
        "a schema of the role's name that came later", migrated=True,
        after=f"{DML}; create schema R authorization R",
        says=("the tables are in the schema public", "set search_path = public"),
    ),
    Role(
        "a second schema before the first", migrated=True, query="search_path=b,public",
        after=f"{DML}; create schema b authorization R", says=("the tables are in the schema",),
    ),
    Role(
        "nobody takes writes", "alter role R set default_transaction_read_only = on",
        ("no host is writable, as target_session_attrs asks for",),
        query="target_session_attrs=read-write",
    ),
)  # fmt: skip


@pytest.fixture
def place(role: Role, postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    """What R and D stand for, and the address of the database for an administrator."""
    make = postgres_server.fresh if role.migrated else postgres_server.empty
    admin = asyncio.run(make())
    database = urlsplit(admin).path[1:]
    place = {"R": f"r_{database}", "D": database, "admin": admin}
    statements = f"create role R login password 'hunter2';{role.setup};{role.after}"
    asyncio.run(statement(admin, named(f"select;{statements}", place)))
    yield place
    asyncio.run(postgres_server.drop(admin))
    server = asyncio.run(postgres_server.url())
    asyncio.run(statement(server, named("drop role R; drop role if exists theirs_D", place)))


async def statement(url: str, text: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(text)
    await connection.close()


def named(text: str, place: Mapping[str, str]) -> str:
    return re.sub(r"(?:\b|(?<=theirs_))[RD]\b", lambda found: place[found[0]], text)


@pytest.mark.parametrize(
    "role",
    [
        # Making all tables takes a while.
        pytest.param(role, marks=[] if role.says or role.migrated else [pytest.mark.proof])
        for role in ROLES
    ],
    ids=lambda role: role.name,
)
def test_a_start_with_the_rights_of_a_role(
    role: Role, place: dict[str, str], tmp_path: Path
) -> None:
    address = urlsplit(place["admin"])
    login = address._replace(
        netloc=f"{place['R']}:hunter2@{address.netloc.rpartition('@')[2]}"
    ).geturl()
    query = f"{'&' if address.query else '?'}{role.query}" if role.query else ""
    says = tuple(named(words, place) for words in role.says)
    run(Start({URL: f"{login}{query}"}, says, "server"), tmp_path, {})


def test_parameters_without_effect_are_told(tmp_path: Path) -> None:
    settings = {f"CARTEIRO_{URL}": "postgresql://u@db/crm?connect_timeout=5&keepalives=1"}
    done = command("check-config", folder=tmp_path, **settings)
    assert (
        "Note: these parameters change nothing here: database.url: connect_timeout, keepalives.\n"
        in done.stdout
    )


@pytest.mark.proof
def test_there_are_many_starts() -> None:
    lists: dict[str, Sized] = {
        "urls": URLS, "texts": TEXTS, "files": PATHS, "answers": ANSWERS, "away": UNREACHED,
        "postgresql": ON_POSTGRES, "roles": ROLES,
    }  # fmt: skip
    counts = {name: len(starts) for name, starts in lists.items()}
    print(json.dumps(counts))
    assert sum(counts.values()) >= 160
