"""The files of docs/deploy: valid, with settings that there are, and no more rights than needed."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.server.config import load
from tests.architecture.tree import PACKAGES, ROOT
from tests.support.requirements import need

pytestmark = pytest.mark.slow

DEPLOY = ROOT / "docs" / "deploy"
COMPOSE = ("compose.yaml", "compose.postgres.yaml")
SETTINGS = {
    "CARTEIRO_HOST": "crm.example.com",
    "POSTGRES_PASSWORD": "0123456789abcdef",
    "GRAFANA_PASSWORD": "fedcba9876543210",
}
EXPOSURE = 2.0
UNIT = DEPLOY / "carteiro.service"


def said(*words: str | Path, **environment: str) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


VARIABLE = re.compile(r"\$\{(\w+):\?[^}]*\}")


@cache
def compose(name: str) -> dict[str, Any]:
    """The services of a compose file with variables filled in."""
    text = VARIABLE.sub(lambda found: SETTINGS[found[1]], (DEPLOY / name).read_text())
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    return services


def nodes(services: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in services.items() if each["image"] == "carteiro"}


@pytest.mark.parametrize("name", COMPOSE)
def test_a_compose_file_is_valid_and_wants_its_variables(name: str) -> None:
    said(need("docker-compose"), "-f", DEPLOY / name, "config", **SETTINGS)
    for missing in sorted(set(VARIABLE.findall((DEPLOY / name).read_text()))):
        done = subprocess.run(
            [need("docker-compose"), "-f", DEPLOY / name, "config"], capture_output=True,
            env=os.environ | SETTINGS | {missing: ""}, timeout=60, text=True,
        )  # fmt: skip
        assert done.returncode != 0
        assert "write it to .env" in done.stderr


@pytest.mark.parametrize("name", COMPOSE)
def test_the_settings_of_a_node_are_valid(name: str) -> None:
    assert nodes(compose(name))
    for service, node in nodes(compose(name)).items():
        config = load(None, node["environment"])
        assert config.server.public_url == "https://crm.example.com", service
        assert config.limits.connections_per_address == config.limits.connections


@pytest.mark.parametrize("name", COMPOSE)
def test_a_node_trusts_the_proxy_alone_and_has_no_right_that_it_needs_not(name: str) -> None:
    services = compose(name)
    proxy = services["proxy"]["networks"]["inside"]["ipv4_address"]
    for node in nodes(services).values():
        assert node["environment"]["CARTEIRO_SERVER__TRUSTED_PROXIES"] == f"{proxy}/32"
        assert node["read_only"] is True
        assert node["cap_drop"] == ["ALL"]
        assert node["security_opt"] == ["no-new-privileges:true"]
        assert node["stop_grace_period"] == "20s"
        assert "ports" not in node
        assert [each.partition(":")[2] for each in node["volumes"]] == ["/data"]
    told = services["proxy"]["environment"]["CARTEIRO_NODES"].split()
    assert told == [f"{each}:8080" for each in nodes(services) if each != "prepare"]


@pytest.mark.parametrize("name", COMPOSE)
def test_no_other_service_can_take_the_address_of_the_proxy(name: str) -> None:
    """The engine gives addresses in the order of starts, and the proxy starts last."""
    text = VARIABLE.sub(lambda found: SETTINGS[found[1]], (DEPLOY / name).read_text())
    pool = yaml.safe_load(text)["networks"]["inside"]["ipam"]["config"][0]
    subnet = IPv4Network(pool["subnet"])
    given = IPv4Network(pool.get("ip_range", pool["subnet"]))
    assert given.subnet_of(subnet)
    fixed = {
        service: IPv4Address(each["networks"]["inside"]["ipv4_address"])
        for service, each in compose(name).items()
        if isinstance(each["networks"], dict)
    }
    assert "proxy" in fixed
    for service, address in fixed.items():
        assert address in subnet, service
        assert fixed.keys() == compose(name).keys() or address not in given, service


def test_passwords_are_written_for_their_owner_alone_and_not_committed() -> None:
    for page in (DEPLOY / "compose.postgres.yaml", ROOT / "docs" / "how-to/deploy.md"):
        [before] = re.findall(r"(.*)\n.*printf 'CARTEIRO_HOST", page.read_text())
        assert "umask 077" in before, page.name
    said(need("git"), "-C", ROOT, "check-ignore", "docs/deploy/.env")


@pytest.mark.parametrize("name", COMPOSE)
def test_the_files_that_a_compose_file_mounts_exist(name: str) -> None:
    mounted = re.findall(r"^\s+- (\.\S+?):/", (DEPLOY / name).read_text(), re.M)
    assert mounted
    assert [path for path in mounted if not (DEPLOY / path).exists()] == []


def test_prometheus_reads_its_configuration_and_the_rules(tmp_path: Path) -> None:
    services = compose("compose.postgres.yaml")
    for path in ("docs/deploy/prometheus.yml", "dashboards/recording.yml", "dashboards/alerts.yml"):
        (tmp_path / Path(path).name).write_text((ROOT / path).read_text())
    said(need("promtool"), "check", "config", tmp_path / "prometheus.yml")
    scraped = yaml.safe_load((tmp_path / "prometheus.yml").read_text())["scrape_configs"]
    example = yaml.safe_load((ROOT / "dashboards/prometheus.yml").read_text())["scrape_configs"]
    assert [job["job_name"] for job in scraped] == [job["job_name"] for job in example]
    targets = scraped[0]["static_configs"][0]["targets"]
    assert targets == [f"{each}:8080" for each in nodes(services) if each != "prepare"]


def test_grafana_finds_prometheus_and_the_dashboards() -> None:
    services = compose("compose.postgres.yaml")
    source = yaml.safe_load((DEPLOY / "grafana/datasources.yml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in services
    provider = yaml.safe_load((DEPLOY / "grafana/dashboards.yml").read_text())["providers"][0]
    folder = provider["options"]["path"]
    mounted = [each for each in services["grafana"]["volumes"] if f":{folder}:" in each]
    assert [Path(each.partition(":")[0]).name for each in mounted] == ["dashboards"]
    assert list((ROOT / "dashboards").glob("*.json"))


def test_the_unit_exposes_little() -> None:
    text = said(
        need("systemd-analyze"), "security", "--offline=true", "--no-pager", UNIT,
    )  # fmt: skip
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", text)
    assert found, text
    assert float(found[1]) <= EXPOSURE


def test_the_unit_is_valid(tmp_path: Path) -> None:
    """Its program is replaced, as `verify` looks for it."""
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/carteiro/bin/carteiro", "/bin/true"))
    done = subprocess.run(
        [need("systemd-analyze"), "verify", "--man=no", copy], capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    ours = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert ours == []


def test_the_settings_of_the_unit_are_valid() -> None:
    lines = re.findall(r"^Environment=(\w+)=(\S+)$", UNIT.read_text(), re.M)
    config = load(None, dict(lines))
    stop = re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.M)
    assert stop
    assert int(stop[1]) > config.server.shutdown_seconds


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


def admitted() -> set[str]:
    """The files of the tree that .dockerignore lets into the image."""
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line[:1] not in ("#", "")
    ]
    listed = said(need("git"), "-C", ROOT, "ls-files", "-co", "--exclude-standard").split()
    found = set()
    for name in listed:
        parts = Path(name).parts
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        keep = True
        for rule in rules:
            pattern = rule.lstrip("!").removeprefix("**/")
            if any(fnmatch.fnmatch(each, pattern) for each in above):
                keep = rule.startswith("!")
        if keep:
            found.add(name)
    return found


def test_the_image_gets_the_program_and_nothing_else() -> None:
    found = admitted()
    top = {name.partition("/")[0] for name in found}
    assert top == {*PACKAGES, "LICENSE", "README.md", "pyproject.toml", "requirements.lock"}


def test_the_image_runs_as_a_user_without_rights() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (\S+)$", text, re.M) == ["10001:10001"]
    variables = dict(re.findall(r"(CARTEIRO_\w+)=(\S+)", text))
    assert load(None, variables).database.url == "sqlite:////data/carteiro.db"
    assert re.findall(r"^VOLUME (\S+)$", text, re.M) == ["/data"]
