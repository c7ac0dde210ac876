"""Two installations in two schemas of one PostgreSQL database, as processes and with commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from tests.support.databases import PostgresServer
from tests.support.process import Serving, carteiro, serving_process
from tests.support.waiting import wait_until


def leads(serving: Serving) -> Callable[[], bool]:
    """Return what tells whether the node leads, and so reads the gauges and runs the duties."""
    return lambda: any(line["event"] == "leading" for line in serving.lines)


@pytest.mark.proof
async def test_both_lead_and_one_is_restored_beside_the_other(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    url = await postgres_server.empty()
    admin = await asyncpg.connect(url)
    await admin.execute("create schema a; create schema b")
    await admin.close()
    given, folders = {}, {}
    for name in "ab":
        (folder := tmp_path / name).mkdir()
        folders[name] = folder
        given[name] = {
            "CARTEIRO_DATABASE__URL": f"{url}{'&' if '?' in url else '?'}search_path={name}",
            "CARTEIRO_SECRETS__KEY_FILE": str(tmp_path / "keys"),
        }
    made = carteiro("secrets", "init", folder=folders["a"], **given["a"])
    assert made.returncode == 0, made.stderr
    with serving_process(folders["b"], **given["b"]) as b:
        with serving_process(folders["a"], **given["a"]) as a:
            for node in (a, b):
                wait_until(leads(node))
            done = carteiro("backup", "kept", folder=folders["a"], **given["a"])
            assert done.returncode == 0, done.stderr
            refused = carteiro("restore", "kept", "--overwrite", folder=folders["a"], **given["a"])
            assert "stop all its servers" in refused.stderr
            assert a.end() == 0
        done = carteiro("restore", "kept", "--overwrite", folder=folders["a"], **given["a"])
        assert done.returncode == 0, done.stderr
        assert b.ask("/readyz")[0] == 200
        wait_until(lambda: b"\noutbox_deliveries{" in b.ask("/metrics")[1])
    await postgres_server.drop(url)
