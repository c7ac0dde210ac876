"""PgBouncer in transaction mode: the same behaviour as without it, or a one-line error."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import subprocess
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.postgres.exclusive import open_exclusive
from outbox.database.transaction import Tx
from outbox.database.transfer import Place
from outbox.errors import CannotStart
from outbox.ids import Ids
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put, start
from tests.outbox.database.test_leadership import candidates, the_one
from tests.support.cluster import USER, own_server, until_answers
from tests.support.databases import SOURCES, PostgresServer
from tests.support.long_limits import served_limits
from tests.support.process import free_port
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS

RENAMES = (1, 21)
"""The first version that supports prepared statements in transaction mode."""
SESSIONS = 3


def bouncer_version() -> tuple[int, ...]:
    """Return the version of the installed command; skip without one."""
    said = subprocess.run([_command(), "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"PgBouncer (\d+)\.(\d+)", said.stdout)
    assert found, said.stdout
    return int(found[1]), int(found[2])


def need_renaming() -> None:
    """Skip unless the command supports prepared statements."""
    version = bouncer_version()
    if version < RENAMES:
        have, want = (".".join(map(str, numbers)) for numbers in (version, RENAMES))
        pytest.skip(f"needs pgbouncer: {want} or newer, here is {have}; set TEST_PGBOUNCER")


@asynccontextmanager
async def bouncer(
    url: str, prepared: int = 200, mode: str = "transaction", more: str = ""
) -> AsyncIterator[str]:
    """Return the address of the database at `url` through a bouncer with few sessions.

    `more` are further lines of its settings.
    """
    with tempfile.TemporaryDirectory(prefix="carteiro-bouncer-") as home:
        async with _running(url, Path(home), prepared, f"pool_mode = {mode}\n{more}") as through:
            yield through


@asynccontextmanager
async def _running(url: str, folder: Path, prepared: int, more: str) -> AsyncIterator[str]:
    parts = urlsplit(url)
    host = parse_qs(parts.query).get("host", [parts.hostname])[0]
    port = free_port()
    users, settings = folder / "users.txt", folder / "bouncer.ini"
    users.write_text('"postgres" ""\n')
    renames = f"max_prepared_statements = {prepared}\n" if bouncer_version() >= RENAMES else ""
    settings.write_text(
        f"[databases]\n* = host={host} port={parts.port or 5432}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {users}\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 200\n{renames}{more}"
    )
    for path in (folder, users, settings):
        path.chmod(0o755)
    process = await asyncio.create_subprocess_exec(
        _command(), settings, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, cwd="/", **_who()
    )
    through = f"postgresql://postgres@127.0.0.1:{port}{parts.path}"
    try:
        await until_answers(through, process)
        yield through
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _command() -> str:
    return os.environ.get("TEST_PGBOUNCER") or need("pgbouncer")


def _who() -> dict[str, Any]:
    """PgBouncer refuses to run as root, as the server does."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


pytestmark = pytest.mark.proof
WRITES = 200


async def test_a_pooler_without_prepared_statements_is_refused(url: str, handle: Open) -> None:
    """An old version, or a new one with this setting."""
    async with bouncer(url, prepared=0) as through:
        with pytest.raises(CannotStart, match=r"PgBouncer 1\.21 or newer with max_prepared_st"):
            await handle(through, direct_url=url)


async def test_units_limits_and_signals_work_behind_it(
    postgres_server: PostgresServer, handle: Open
) -> None:
    need_renaming()
    url = await postgres_server.empty()
    async with AsyncExitStack() as stack:
        stack.enter_context(served_limits())
        through = await stack.enter_async_context(bouncer(url))
        db = await handle(through, direct_url=url, synchronous_commit="remote_write")
        await migrate(db, SOURCES)

        async def settings(tx: Tx) -> list[str]:
            row = await tx.one(
                "select current_setting('lock_timeout') as a, current_setting('jit') as b,"
                " current_setting('statement_timeout') as c,"
                " current_setting('idle_in_transaction_session_timeout') as d,"
                " current_setting('synchronous_commit') as e,"
                " current_setting('enable_seqscan') as f"
            )
            assert row is not None
            return [row[key] for key in "abcdef"]

        own = ["off", "8s", "2s", "remote_write"]
        assert await db.write(settings) == ["5s", *own, "on"]
        assert await db.apart("lease").read(settings) == ["1s", *own, "on"]
        assert await db.apart("drain").write(settings) == ["1s", *own, "off"]
        woken = asyncio.Event()
        other = await handle(through, direct_url=url)
        other.listen(woken.set, lambda: "n1")
        await woken.wait()
        woken.clear()
        # More concurrent units than the bouncer has sessions, with statements that each session
        # needs.
        await asyncio.gather(*(db.write(put, f"{n:03}") for n in range(WRITES)))
        found = await asyncio.gather(*(db.read(names) for _ in range(20)), db.scan("ana", names))
        assert all(len(each) == WRITES for each in found)
        await woken.wait()
        await db.close()
        await other.close()
    await postgres_server.drop(url)


IGNORES = (
    "ignore_startup_parameters = lock_timeout,statement_timeout,synchronous_commit,jit,"
    "idle_in_transaction_session_timeout\n"
)
"""What an operator sets after the first refusal."""
ROOMY = "default_pool_size = 50\n"
SERVES = "serves"
PAST = "gives each transaction another session.*set database.direct_url to the URL of PostgreSQL"


@pytest.mark.parametrize(
    ("mode", "more", "says"),
    [
        ("transaction", "", PAST),
        ("transaction", IGNORES, PAST),
        ("transaction", IGNORES + ROOMY, PAST),
        ("transaction", IGNORES + ROOMY + "server_round_robin = 1\n", PAST),
        ("transaction", IGNORES + "default_pool_size = 1\n", PAST),
        ("statement", IGNORES, PAST),
        ("session", ROOMY, SERVES),
        ("session", ROOMY + IGNORES, SERVES),
    ],
)
async def test_a_pooler_that_nobody_named(url: str, mode: str, more: str, says: str) -> None:
    """With and without its support of prepared statements, and beside other clients."""
    for prepared in (0, 200):
        async with bouncer(url, prepared, mode, more) as through:
            others = [await asyncpg.connect(through) for _ in range(2)]
            assert re.search(says, await start(through), re.S)
            for other in others:
                await other.close()


async def test_sessions_of_a_pooler_have_our_settings(url: str, handle: Open) -> None:
    """It ignores what it is given, and tells numbers that another session may have."""

    async def settings(tx: Tx) -> list[object]:
        row = await tx.one(
            "select current_setting('lock_timeout') as a, current_setting('jit') as b,"
            " current_setting('application_name') as c"
        )
        assert row is not None
        return [*(row[key] for key in "abc"), tx._connection.started]  # type: ignore[attr-defined]

    async with bouncer(url, mode="session", more=IGNORES + ROOMY) as through:
        db = await handle(through)
        with served_limits():
            db = await handle(through)
            assert await db.read(settings) == ["5s", "off", "carteiro", None]
        async with candidates(through, 2) as standing:
            await the_one(standing)
        woken = asyncio.Event()
        db.listen(woken.set, lambda: "n1")
        await woken.wait()
        await db.write(put, "a")
        assert await db.read(names) == ["a"]
        place = Place(through, SystemClock(), Ids())
        with pytest.raises(CannotStart, match="sessions of Carteiro use this"):
            async with open_exclusive(place):
                raise AssertionError


async def test_a_direct_url_that_is_not_direct(url: str, postgres_server: PostgresServer) -> None:
    need_renaming()
    other = await postgres_server.fresh()
    async with bouncer(url, more=IGNORES) as through:
        assert "database.direct_url leads to a pooler" in await start(through, through)
        said = await start(through, other)
        assert "database.url leads to the schema public" in said
        assert "but database.direct_url to public of" in said
        with pytest.raises(CannotStart, match="leads to a pooler"):
            async with open_exclusive(Place(through, SystemClock(), Ids())):
                raise AssertionError
        # A server of a copy, or the former primary, has a database of the same name.
        name = urlsplit(url).path
        async with own_server() as second:
            await second.run(f"create database {name[1:]}")
            elsewhere = urlsplit(second.url)._replace(path=name).geturl()
            assert "lead to two servers, which both have a" in await start(through, elsewhere)
    await postgres_server.drop(other)


async def test_a_pooler_that_is_full(url: str) -> None:
    async with bouncer(url, mode="session", more="max_client_conn = 1\n") as through:
        # Its last free connection may not be back yet.
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                with suppress(asyncpg.PostgresError):
                    one = await asyncpg.connect(through)
                    break
        assert "has no free connection" in await start(through)
        await one.close()
