"""The services of compose.postgres.yaml as processes: prepared once or twice, then two nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.test_deploy_files import nodes
from tests.support.databases import PostgresServer
from tests.support.process import environment, serving_process

SERVICES = nodes("compose.postgres.yaml")
URL_FILE = "CARTEIRO_DATABASE__URL_FILE"


def settings(service: str, data: Path, database: str) -> dict[str, str]:
    """The settings of a service, with another database in its secret and its volume elsewhere."""
    (secret := data.parent / "database-url").write_text(database)
    return {
        name: str(secret) if name == URL_FILE else value.replace("/data", str(data))
        for name, value in SERVICES[service]["environment"].items()
    }


def prepare(data: Path, database: str) -> subprocess.CompletedProcess[str]:
    """Run the command of `prepare`."""
    service = SERVICES["prepare"]
    [command] = service["command"]
    program = data.parent / "carteiro"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gateway "$@"\n')
    program.chmod(0o755)
    return subprocess.run(
        [*service["entrypoint"], command.replace("/data", str(data))],
        env=environment(data, **settings("prepare", data, database))
        | {"PATH": f"{program.parent}:{os.environ['PATH']}"},
        cwd=data, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


async def test_both_nodes_start_after_prepare_which_may_run_again(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    database = await postgres_server.fresh()
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    keys = set()
    for _ in range(2):
        done = prepare(data, database)
        assert done.returncode == 0, done.stdout + done.stderr
        keys.add((data / "carteiro.key").read_text())
    assert len(keys) == 1
    folders = [tmp_path / name for name in ("node-1", "node-2")]
    for folder in folders:
        folder.mkdir()
    with (
        serving_process(folders[0], **settings("node-1", data, database)) as one,
        serving_process(folders[1], **settings("node-2", data, database)) as two,
    ):
        assert one.ask("/readyz")[0] == two.ask("/readyz")[0] == 200
        made = ("migrated", "database_created")
        assert not [line for line in one.lines + two.lines if line["event"] in made]
    await postgres_server.drop(database)


async def test_an_empty_volume_makes_no_second_key(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    database = await postgres_server.fresh()
    data, empty = tmp_path / "data", tmp_path / "empty"
    for folder in (data, empty, tmp_path / "node"):
        folder.mkdir(mode=0o700)
    assert prepare(data, database).returncode == 0
    with serving_process(tmp_path / "node", **settings("node-1", data, database)):
        pass
    done = prepare(empty, database)
    assert done.returncode == 1
    [line] = [line for line in done.stderr.splitlines() if line.startswith("carteiro: ")]
    assert f"put its key file at {empty / 'carteiro.key'}" in line
    assert list(empty.iterdir()) == []
    # Nor while the database cannot be reached.
    done = prepare(empty, "postgresql://nobody@127.0.0.1:9/none")
    assert done.returncode == 1
    assert list(empty.iterdir()) == []
    await postgres_server.drop(database)
