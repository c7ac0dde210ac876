"""A PgBouncer for one test, in transaction mode, before a PostgreSQL server.

The command is `pgbouncer`, or the value of TEST_PGBOUNCER.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import subprocess
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from tests.support.cluster import USER
from tests.support.process import free_port
from tests.support.requirements import need

RENAMES = (1, 21)
"""The first version that supports prepared statements in transaction mode."""
SESSIONS = 3
START_SECONDS = 20.0


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
async def bouncer(url: str, prepared: int = 200) -> AsyncIterator[str]:
    """Return the address of the database at `url` through a bouncer with few sessions."""
    with tempfile.TemporaryDirectory(prefix="carteiro-bouncer-") as home:
        async with _running(url, Path(home), prepared) as through:
            yield through


@asynccontextmanager
async def _running(url: str, folder: Path, prepared: int) -> AsyncIterator[str]:
    parts = urlsplit(url)
    host = parse_qs(parts.query).get("host", [parts.hostname])[0]
    port = free_port()
    users, settings = folder / "users.txt", folder / "bouncer.ini"
    users.write_text('"postgres" ""\n')
    renames = f"max_prepared_statements = {prepared}\n" if bouncer_version() >= RENAMES else ""
    settings.write_text(
        f"[databases]\n* = host={host} port={parts.port or 5432}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 200\n{renames}"
    )
    for path in (folder, users, settings):
        path.chmod(0o755)
    process = await asyncio.create_subprocess_exec(
        _command(), settings, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, cwd="/", **_who()
    )
    through = f"postgresql://postgres@127.0.0.1:{port}{parts.path}"
    try:
        await _until_up(process, through)
        yield through
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _until_up(process: Process, url: str) -> None:
    async with asyncio.timeout(START_SECONDS):
        while True:
            try:
                await (await asyncpg.connect(url, timeout=5)).close()
                return
            except (OSError, asyncpg.PostgresError):
                if process.returncode is not None:
                    _, said = await process.communicate()
                    raise AssertionError(said.decode()) from None
                await asyncio.sleep(0.05)


def _command() -> str:
    return os.environ.get("TEST_PGBOUNCER") or need("pgbouncer")


def _who() -> dict[str, Any]:
    """PgBouncer refuses to run as root, as the server does."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(USER)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
