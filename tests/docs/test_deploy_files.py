"""The files of docs/deploy: settings that there are, and no more rights than needed."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from functools import cache
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.server.config import ConfigFaults, load
from gateway.server.program import program_version
from tests.architecture.tree import PACKAGES, ROOT

DEPLOY = ROOT / "docs" / "deploy"
COMPOSE = ("compose.yaml", "compose.postgres.yaml")
SETTINGS = {"CARTEIRO_HOST": "crm.example.com"}
RIGHTS = {"proxy": ["NET_BIND_SERVICE"]}
"""What a service of compose needs beside the rights of a user."""
UNIT = DEPLOY / "carteiro.service"
VARIABLE = re.compile(r"\$\{(\w+):\?[^}]*\}")
KUBERNETES = DEPLOY / "kubernetes"
KUSTOMIZATION = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())


@cache
def composed(name: str) -> dict[str, Any]:
    """Return a compose file with its variables filled in."""
    text = VARIABLE.sub(lambda found: SETTINGS[found[1]], (DEPLOY / name).read_text())
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def nodes(name: str) -> dict[str, Any]:
    """Return the services of a compose file that run the image."""
    services = composed(name)["services"]
    return {service: each for service, each in services.items() if each["image"] == "carteiro"}


def manifest(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((KUBERNETES / name).read_text())
    return loaded


def git(*words: str | Path) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("name", COMPOSE)
def test_a_node_has_valid_settings_trusts_the_proxy_alone_and_has_no_right_more(name: str) -> None:
    services = composed(name)["services"]
    proxy = services["proxy"]["networks"]["inside"]["ipv4_address"]
    assert nodes(name)
    for service, node in nodes(name).items():
        settings = {k: v for k, v in node["environment"].items() if not k.endswith("URL_FILE")}
        config = load(None, settings)
        assert config.server.public_url == "https://crm.example.com", service
        assert config.limits.connections_per_address == config.limits.connections
        assert node["environment"]["CARTEIRO_SERVER__TRUSTED_PROXIES"] == f"{proxy}/32"
        assert node["stop_grace_period"] == "20s"
        assert "ports" not in node
        assert [each.partition(":")[2] for each in node["volumes"]] == ["/data"]
    told = services["proxy"]["environment"]["CARTEIRO_NODES"].split()
    assert told == [f"{each}:8080" for each in nodes(name) if each != "prepare"]
    mounted = re.findall(r"^\s+- (\.\S+?):/", (DEPLOY / name).read_text(), re.M)
    assert mounted
    assert [path for path in mounted if not (DEPLOY / path).exists()] == []


@pytest.mark.parametrize("name", COMPOSE)
def test_no_other_service_can_take_the_address_of_the_proxy(name: str) -> None:
    """The engine gives addresses in the order of starts, and the proxy starts last."""
    services = composed(name)["services"]
    pool = composed(name)["networks"]["inside"]["ipam"]["config"][0]
    subnet = IPv4Network(pool["subnet"])
    given = IPv4Network(pool.get("ip_range", pool["subnet"]))
    assert given.subnet_of(subnet)
    fixed = {
        service: IPv4Address(each["networks"]["inside"]["ipv4_address"])
        for service, each in services.items()
        if isinstance(each["networks"], dict)
    }
    assert "proxy" in fixed
    for service, address in fixed.items():
        assert address in subnet, service
        assert fixed.keys() == services.keys() or address not in given, service


def excess(services: dict[str, Any]) -> list[str]:
    """Return what services may do beyond their need, each with the name of its service."""
    found = []
    for name, each in services.items():
        for key, wanted in (
            ("read_only", True), ("cap_drop", ["ALL"]),
            ("security_opt", ["no-new-privileges:true"]), ("privileged", None),
            ("cap_add", RIGHTS.get(name)), ("network_mode", None), ("pid", None),
        ):  # fmt: skip
            if each.get(key) != wanted:
                found.append(f"{name}: {key}")
        for key, value in each.get("environment", {}).items():
            secret = re.search("PASSWORD|SECRET|TOKEN|KEY|URL", key) and not key.endswith("_FILE")
            if secret and not re.fullmatch(r"https://[^/@:]+", str(value)):
                found.append(f"{name}: {key}")
        if any("docker.sock" in str(volume) for volume in each.get("volumes", ())):
            found.append(f"{name}: volumes")
    return found


@pytest.mark.parametrize("name", COMPOSE)
def test_no_container_has_a_right_more_and_no_password_is_in_an_environment(name: str) -> None:
    document = composed(name)
    services = document["services"]
    assert excess(services) == []
    used = {secret for each in services.values() for secret in each.get("secrets", ())}
    assert used == set(document.get("secrets", ()))
    for service, each in services.items():
        files = [v for k, v in each.get("environment", {}).items() if k.endswith("_FILE")]
        for path in files:
            if path.startswith("/run/secrets/"):
                assert path.removeprefix("/run/secrets/") in each["secrets"], service
    for service, each in services.items():
        for key in ("cap_drop", "read_only", "security_opt"):
            less = {k: v for k, v in each.items() if k != key}
            assert excess(services | {service: less}) == [f"{service}: {key}"]
    [one, *_] = services
    told = services[one] | {"environment": {"POSTGRES_PASSWORD": "x"}}
    assert excess(services | {one: told}) == [f"{one}: POSTGRES_PASSWORD"]


def test_secrets_are_written_for_their_owner_alone_and_not_committed(tmp_path: Path) -> None:
    script = tmp_path / "secrets.sh"
    script.write_text((DEPLOY / "secrets.sh").read_text())
    subprocess.run(["sh", script], check=True)
    folder = tmp_path / "secrets"
    assert folder.stat().st_mode & 0o777 == 0o700
    named = composed("compose.postgres.yaml")["secrets"]
    assert {each["file"] for each in named.values()} == {
        f"./secrets/{path.name}" for path in folder.iterdir()
    }
    # The users in the containers are others than the one who wrote them.
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o444}
    assert load(None, {"CARTEIRO_DATABASE__URL_FILE": str(folder / "database-url")})
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(set(before.values())) == len(named)
    # A second time it replaces nothing.
    assert subprocess.run(["sh", script], capture_output=True).returncode != 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    secrets = [
        DEPLOY / ".env", DEPLOY / "secrets/database-url", KUBERNETES / "carteiro.key",
        KUBERNETES / "database-url",
    ]  # fmt: skip
    assert git("check-ignore", *secrets).split() == [str(path) for path in secrets]


def test_nothing_starts_before_the_addresses_of_the_ingress_are_named() -> None:
    [settings] = KUSTOMIZATION["configMapGenerator"]
    environment = dict(literal.split("=", 1) for literal in settings["literals"])
    key = "CARTEIRO_SERVER__TRUSTED_PROXIES"
    with pytest.raises(ConfigFaults, match=r"server\.trusted_proxies: .*is not a network"):
        load(None, environment)
    assert load(None, environment | {key: "10.4.1.7/32"})
    # Wherever else a file trusts proxies, it names few addresses.
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            for network in re.findall(r"TRUSTED_PROXIES[=:] ?([\d./]+)", path.read_text()):
                assert IPv4Network(network).num_addresses == 1, path


def test_prometheus_and_grafana_find_the_nodes_and_the_dashboards() -> None:
    name = "compose.postgres.yaml"
    services = composed(name)["services"]
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    example = yaml.safe_load((ROOT / "dashboards/prometheus.yml").read_text())["scrape_configs"]
    assert [job["job_name"] for job in scraped] == [job["job_name"] for job in example]
    targets = scraped[0]["static_configs"][0]["targets"]
    assert targets == [f"{each}:8080" for each in nodes(name) if each != "prepare"]
    source = yaml.safe_load((DEPLOY / "grafana/datasources.yml").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in services
    provider = yaml.safe_load((DEPLOY / "grafana/dashboards.yml").read_text())["providers"][0]
    folder = provider["options"]["path"]
    mounted = [each for each in services["grafana"]["volumes"] if f":{folder}:" in each]
    assert [Path(each.partition(":")[0]).name for each in mounted] == ["dashboards"]


def test_the_settings_of_the_unit_are_valid() -> None:
    text = UNIT.read_text()
    config = load(None, dict(re.findall(r"^Environment=(\w+)=(\S+)$", text, re.M)))
    [stop] = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.M)
    assert int(stop) > config.server.shutdown_seconds
    # The metrics of the process are read from /proc/stat, which ProcSubset=pid hides.
    assert "\nProcSubset" not in text


def test_the_image_gets_the_program_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line[:1] not in ("#", "")]
    found = set()
    for name in git("ls-files", "-co", "--exclude-standard").split():
        parts = name.split("/")
        above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
        kept = True
        for rule in rules:
            pattern = rule.lstrip("!").removeprefix("**/")
            if any(fnmatch.fnmatch(each, pattern) for each in above):
                kept = rule.startswith("!")
        if kept:
            found.add(parts[0])
    assert found == {*PACKAGES, "LICENSE", "README.md", "pyproject.toml", "requirements.lock"}


def test_the_image_runs_as_a_user_without_rights() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (\S+)$", text, re.M) == ["10001:10001"]
    variables = dict(re.findall(r"(CARTEIRO_\w+)=(\S+)", text))
    assert load(None, variables).database.url == "sqlite:////data/carteiro.db"
    assert re.findall(r"^VOLUME (\S+)$", text, re.M) == ["/data"]


@pytest.mark.parametrize("name", ["deployment.yaml", "migrate.yaml"])
def test_a_pod_has_valid_settings_from_what_kustomize_makes_and_no_right_more(
    name: str, tmp_path: Path
) -> None:
    [settings] = KUSTOMIZATION["configMapGenerator"]
    [secret] = KUSTOMIZATION["secretGenerator"]
    environment = dict(literal.split("=", 1) for literal in settings["literals"])
    environment["CARTEIRO_SERVER__TRUSTED_PROXIES"] = "10.4.1.7/32"
    assert load(None, environment).server.public_url == "https://crm.example.com"
    # The image has settings of its own.
    url = tmp_path / "database-url"
    url.write_text("postgresql://u:p@db/n")
    image = re.findall(r"(CARTEIRO_\w+)=(\S+)", (ROOT / "Dockerfile").read_text())
    whole = dict(image) | environment | {"CARTEIRO_DATABASE__URL_FILE": str(url)}
    assert load(None, whole).database.url == "postgresql://u:p@db/n"
    pod = manifest(name)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert container["envFrom"] == [{"configMapRef": {"name": settings["name"]}}]
    [mount] = [m for m in container["volumeMounts"] if m["name"] == "secrets"]
    files = {f"{mount['mountPath']}/{file}" for file in secret["files"]}
    assert {variable["value"] for variable in container["env"]} == files
    [volume] = [v for v in pod["volumes"] if v["name"] == "secrets"]
    assert volume["secret"]["secretName"] == secret["name"]
    # Other users may not read the key file, or Carteiro refuses it.
    assert volume["secret"]["defaultMode"] & 0o007 == 0


def test_a_pod_has_the_time_to_end_and_the_image_of_this_version() -> None:
    pod = manifest("deployment.yaml")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    shutdown = load(None, {}).server.shutdown_seconds
    assert pod["terminationGracePeriodSeconds"] >= pause + shutdown + 5
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert KUSTOMIZATION["images"] == [{"name": "carteiro", "newTag": program_version()}]


def test_the_service_and_the_budget_select_the_nodes_alone() -> None:
    labels = manifest("deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    job = manifest("migrate.yaml")["spec"]["template"]["metadata"]["labels"]
    for selector in (
        manifest("service.yaml")["spec"]["selector"],
        manifest("disruption.yaml")["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
        assert not selector.items() <= job.items()
