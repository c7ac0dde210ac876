"""The files of docs/deploy, as the programs read them that use them."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs.test_deploy_files import (
    COMPOSE,
    DEPLOY,
    KUBERNETES,
    KUSTOMIZATION,
    SETTINGS,
    UNIT,
    VARIABLE,
)  # fmt: skip
from tests.support.cluster import UNSYNCED, own_server
from tests.support.requirements import need
from tests.support.versions import versions

EXPOSURE = 2.0


def run(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, timeout=100
    )


def said(*words: str | Path, **environment: str) -> str:
    """The output of a command that succeeds."""
    done = run(*words, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", COMPOSE)
def test_a_compose_file_is_valid_and_wants_its_variables(name: str) -> None:
    words = (need("docker-compose"), "-f", DEPLOY / name, "config")
    said(*words, **SETTINGS)
    for missing in sorted(set(VARIABLE.findall((DEPLOY / name).read_text()))):
        done = run(*words, **SETTINGS | {missing: ""})
        assert done.returncode != 0
        assert "write it to .env" in done.stderr


@pytest.mark.proof
async def test_the_role_owns_its_database_and_nothing_else(tmp_path: Path) -> None:
    """What the container of PostgreSQL runs on an empty volume."""
    address = tmp_path / "database-url"
    address.write_text("postgresql://carteiro:0123456789abcdef@postgres:5432/carteiro")
    script = tmp_path / "role.sh"
    text = (DEPLOY / "role.sh").read_text()
    script.write_text(text.replace("/run/secrets/database-url", str(address)))
    psql = versions()[max(versions())] / "psql"
    async with own_server(UNSYNCED) as cluster:
        at = {"PGHOST": "127.0.0.1", "PGPORT": str(cluster.port)}
        path = f"{psql.parent}:{os.environ['PATH']}"
        await asyncio.to_thread(said, "sh", script, **at, PATH=path)

        async def asked(sql: str, user: str = "carteiro", database: str = "carteiro") -> str:
            words = (psql, "-XAtc", sql, "-U", user, "-d", database)
            done = await asyncio.to_thread(run, *words, **at)
            return done.stdout.strip() or done.stderr

        rights = "rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls"
        assert await asked(f"select {rights} from pg_roles where rolname = user") == "f|f|f|f|f"
        assert await asked("create table one (a int)") == "CREATE TABLE"
        for sql in ("create database other", "create role other", "copy one to program 'true'"):
            assert "permission denied" in await asked(sql), sql
        assert "permission denied" in await asked("select 1", database="postgres")
        set_ = "select rolpassword <> '' from pg_authid where rolname = 'carteiro'"
        assert await asked(set_, "postgres") == "t"


def test_prometheus_reads_its_configuration_and_the_rules(tmp_path: Path) -> None:
    for path in ("docs/deploy/prometheus.yml", "dashboards/recording.yml", "dashboards/alerts.yml"):
        (tmp_path / Path(path).name).write_text((ROOT / path).read_text())
    said(need("promtool"), "check", "config", tmp_path / "prometheus.yml")


def test_every_manifest_is_listed_and_valid_and_an_unknown_field_is_found(tmp_path: Path) -> None:
    manifests = [KUBERNETES / name for name in KUSTOMIZATION["resources"]]
    assert {*manifests, KUBERNETES / "kustomization.yaml"} == set(KUBERNETES.glob("*.yaml"))
    tool = Path(sys.executable).parent / "kubernetes-validate"
    said(tool, "--strict", *manifests)
    wrong = tmp_path / "service.yaml"
    wrong.write_text((KUBERNETES / "service.yaml").read_text().replace("selector:", "select:"))
    assert run(tool, "--strict", wrong).returncode != 0


def test_the_unit_is_valid_and_exposes_little(tmp_path: Path) -> None:
    tool = need("systemd-analyze")
    text = said(tool, "security", "--offline=true", "--no-pager", UNIT)
    [exposure] = re.findall(r"Overall exposure level for \S+: ([\d.]+)", text)
    assert float(exposure) <= EXPOSURE
    # Its program is replaced, as `verify` looks for it.
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/carteiro/bin/carteiro", "/bin/true"))
    done = run(tool, "verify", "--man=no", copy)
    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []


def test_a_command_runs_as_the_service_does(tmp_path: Path) -> None:
    """systemd-run is replaced by a program that tells what it is given."""
    told = tmp_path / "systemd-run"
    told.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    told.chmod(0o755)
    words = ("replay", "with a blank", "", "--state")
    path = f"{tmp_path}:{os.environ['PATH']}"
    given = said("sh", DEPLOY / "carteiro.sh", *words, PATH=path).split("\n")[:-1]
    assert given[-5:] == ["/opt/carteiro/bin/carteiro", *words]
    unit = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.M))
    assert {
        f"--uid={unit['User']}",
        f"--gid={unit['Group']}",
        f"--working-directory={unit['WorkingDirectory']}",
        f"--property=UMask={unit['UMask']}",
        f"--property=EnvironmentFile={unit['EnvironmentFile']}",
        *(f"--setenv={each}" for each in re.findall(r"^Environment=(.*)$", UNIT.read_text(), re.M)),
    } <= set(given)
    known = said(need("systemd-run"), "--help")
    for word in given[: given.index("/opt/carteiro/bin/carteiro")]:
        assert word.partition("=")[0] in known, word
