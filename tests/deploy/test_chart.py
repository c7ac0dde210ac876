"""The Helm chart: what it renders is valid and safe, and Carteiro reads it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from gateway.server.config import load
from gateway.server.program import program_version
from tests.architecture.tree import ROOT
from tests.deploy import chart
from tests.docs.test_deploy_files import manifest
from tests.support.requirements import need

POSTGRESQL: dict[str, Any] = {
    "database": {"urlSecret": {"name": "cluster-app", "key": "uri"}},
    "keySecret": {"name": "carteiro-key"},
}
INGRESS: dict[str, Any] = {
    "ingress": {"enabled": True, "hosts": ["crm.example.com", "shop.example.com"]},
    "config": {
        "server": {"public_url": "https://crm.example.com", "trusted_proxies": ["10.4.1.7/32"]}
    },
}
FULL: dict[str, Any] = POSTGRESQL | {
    "image": {"repository": "registry.example.com/carteiro", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "secrets": [
        {"setting": "mail.password", "name": "mail", "key": "password"},
        {"setting": "metrics.token", "name": "metrics", "key": "token"},
    ],
    "config": {
        "server": INGRESS["config"]["server"] | {"shutdown_seconds": 20, "port": 8090},
        "connect": {
            "apps": [
                {
                    "id": "erp", "name": 'ERP "two" <Ç>', "redirect_uris": ["https://erp.example.com/x"],
                    "receivers": ["https://erp.example.com"],
                }
            ]
        },
        "retry": {"schedule": [5, 300.5]},
        "limits": {"request_bytes": 134217728},
        "mail": {"host": "smtp.example.com", "from_address": "crm@example.com"},
        "storefront": {"graphiql": False},
        "retention": None,
    },
    "ingress": INGRESS["ingress"]
    | {"className": "nginx", "tls": [{"secretName": "tls", "hosts": ["crm.example.com"]}]},
    "autoscaling": {"enabled": True},
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "serviceAccount": {"create": False, "name": "own"},
    "extraEnv": [{"name": "CARTEIRO_LOGGING__LEVEL", "value": "warning"}],
    "extraVolumes": [{"name": "authorities", "configMap": {"name": "authorities"}}],
    "extraVolumeMounts": [{"name": "authorities", "mountPath": "/etc/authorities"}],
    "podLabels": {"team": "crm"}, "priorityClassName": "high", "nodeSelector": {"disk": "ssd"},
}  # fmt: skip
SQLITE: dict[str, Any] = {"database": {"engine": "sqlite"}, "replicas": 1}
CASES = {"postgresql": POSTGRESQL, "full": FULL, "sqlite": SQLITE | INGRESS}


def rendered(values: dict[str, Any], folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    words = (need("helm"), "template", "crm", chart.CHART, "--kube-version", "1.31", "-f", file)
    return subprocess.run([*words, *more], capture_output=True, text=True, timeout=100)


def objects(values: dict[str, Any], folder: Path) -> dict[tuple[str, str], Any]:
    """Return what the chart renders, by kind and by what follows `crm-carteiro` in its name."""
    done = rendered(values, folder)
    assert done.returncode == 0, done.stderr
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    return {
        (one["kind"], one["metadata"]["name"].removeprefix("crm-carteiro").strip("-")): one
        for one in found
    }


def test_the_schema_and_the_values_are_those_of_this_version() -> None:
    assert chart.SCHEMA.read_text() == chart.text(), "run: python -m tests.deploy.chart"
    about = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == program_version()
    schema = json.loads(chart.SCHEMA.read_text())
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    assert jsonschema_rs.is_valid(schema, values)
    # Each value is described, and what charts above this one hand down is allowed.
    assert schema["properties"].keys() - values.keys() == {"global", "enabled"}
    wrong = values | {"config": {"limits": {"brust": 1}}}
    assert not jsonschema_rs.is_valid(schema, wrong)


@pytest.mark.proof
@pytest.mark.parametrize("name", CASES)
def test_what_it_renders_is_valid_and_has_no_right_more(name: str, tmp_path: Path) -> None:
    made = objects(CASES[name], tmp_path)
    monitor = made.pop(("ServiceMonitor", ""), None)
    assert (monitor is not None) == (name == "full")
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(made.values()))
    tool = Path(sys.executable).parent / "kubernetes-validate"
    done = subprocess.run([tool, "--strict", file], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = manifest("deployment.yaml")["spec"]["template"]["spec"]
    jobs = [one for one in made.values() if one["kind"] in ("Deployment", "Job")]
    assert len(jobs) == (1 if name == "sqlite" else 2)
    for one in jobs:
        pod = one["spec"]["template"]["spec"]
        [container] = pod["containers"]
        assert container["securityContext"] == told["containers"][0]["securityContext"]
        assert told["securityContext"].items() <= pod["securityContext"].items()
        assert pod["automountServiceAccountToken"] is False
        config = made["ConfigMap", "migrate" if one["kind"] == "Job" else ""]
        readable(pod, config["data"]["config.toml"], name, tmp_path)
    node = made["Deployment", ""]["spec"]["template"]
    [container] = node["spec"]["containers"]
    for key in ("startupProbe", "livenessProbe", "readinessProbe", "lifecycle", "resources"):
        assert container[key] == told["containers"][0][key], key
    for found in ("Service", "PodDisruptionBudget"):
        if (found, "") in made:
            selector = made[found, ""]["spec"]["selector"]
            chosen = selector.get("matchLabels", selector)
            assert chosen.items() <= node["metadata"]["labels"].items()
            if name != "sqlite":
                job = made["Job", "migrate"]["spec"]["template"]["metadata"]["labels"]
                assert not chosen.items() <= job.items()


def readable(pod: dict[str, Any], text: str, name: str, folder: Path) -> None:
    """Check that Carteiro takes the settings of a pod, beside those of its image."""
    file = folder / "config.toml"
    file.write_text(text)
    [container] = pod["containers"]
    image = re.findall(r"(CARTEIRO_\w+)=(\S+?)(?:$| )", (ROOT / "Dockerfile").read_text(), re.M)
    environment = dict(image) | {one["name"]: one["value"] for one in container["env"]}
    assert environment.pop("CARTEIRO_CONFIG") == "/etc/carteiro/config.toml"
    secrets = {}
    for volume in pod["volumes"]:
        if volume["name"] == "secrets":
            # Other users may not read the key file, or Carteiro refuses it.
            assert volume["projected"]["defaultMode"] & 0o007 == 0
            for source in volume["projected"]["sources"]:
                [item] = source["secret"]["items"]
                secrets[f"/run/secrets/carteiro/{item['path']}"] = item["key"]
    used = {value for value in environment.values() if value.startswith("/run/secrets/")}
    assert used == secrets.keys()
    for variable, path in environment.items():
        if path in secrets:
            stored = folder / secrets[path]
            stored.write_text("postgresql://u:p@db/carteiro" if secrets[path] == "uri" else "hush")
            environment[variable] = str(stored)
    config = load(file, environment)
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    if name == "sqlite":
        assert config.database.url == "sqlite:////data/carteiro.db"
        assert "data" in mounts
        return
    assert config.database.url == "postgresql://u:p@db/carteiro"
    assert config.limits.connections_per_address == 1000
    if name == "full":
        assert config.connect.apps[0].name == 'ERP "two" <Ç>'
        assert [*config.retry.schedule] == [5, 300.5]
        assert config.limits.request_bytes == 134_217_728
        assert (config.mail.password, config.metrics.token) == ("hush", "hush")
        assert (config.storefront.graphiql, config.logging.level) == (False, "warning")
        assert container["image"].endswith(f"/carteiro@sha256:{'0' * 64}")
        assert pod["imagePullSecrets"] == [{"name": "registry"}]


@pytest.mark.proof
def test_what_the_values_turn_on_and_off(tmp_path: Path) -> None:
    full, small = objects(FULL, tmp_path), objects(SQLITE, tmp_path)
    plain = objects(POSTGRESQL, tmp_path)
    assert {kind for kind, _ in plain} == {
        "ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Service", "ServiceAccount",
    }  # fmt: skip
    assert plain["Deployment", ""]["spec"]["replicas"] == 2
    assert full.keys() - plain.keys() == {
        ("HorizontalPodAutoscaler", ""), ("Ingress", ""), ("ServiceMonitor", ""),
    }  # fmt: skip
    # The autoscaler alone says how many there are.
    assert "replicas" not in full["Deployment", ""]["spec"]
    hosts = [rule["host"] for rule in full["Ingress", ""]["spec"]["rules"]]
    assert hosts == INGRESS["ingress"]["hosts"]
    pod = full["Deployment", ""]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] == 35
    assert pod["containers"][0]["ports"][0]["containerPort"] == 8090
    [endpoint] = full["ServiceMonitor", ""]["spec"]["endpoints"]
    assert endpoint["authorization"]["credentials"] == {"name": "metrics", "key": "token"}
    # A hook runs before there is a service account of the chart.
    assert "serviceAccountName" not in plain["Job", "migrate"]["spec"]["template"]["spec"]
    # One node has no budget, or its machine could not be drained; two pods would share one file.
    assert {kind for kind, _ in small} == {
        "ConfigMap", "Deployment", "PersistentVolumeClaim", "Service", "ServiceAccount",
    }  # fmt: skip
    assert small["Deployment", ""]["spec"]["strategy"] == {"type": "Recreate"}
    kept = small["PersistentVolumeClaim", ""]["metadata"]["annotations"]
    assert kept == {"helm.sh/resource-policy": "keep"}


@pytest.mark.proof
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "database.urlSecret.name: name the Secret"),
        ({"database": POSTGRESQL["database"]}, "keySecret.name: name the Secret"),
        (SQLITE | {"replicas": 2}, "replicas: SQLite serves one process, not 2"),
        (SQLITE | {"autoscaling": {"enabled": True}}, "autoscaling.enabled: SQLite serves one"),
        (POSTGRESQL | {"ingress": {"enabled": True}}, "config.server.public_url: set the https"),
        (POSTGRESQL | INGRESS | {"config": {"server": {"public_url": "https://crm.example.com"}}},
         "config.server.trusted_proxies: list the addresses"),
        (POSTGRESQL | INGRESS | {"ingress": {"enabled": True}}, "ingress.hosts: list the host"),
        (POSTGRESQL | {"config": {"server": {"prot": 1}}}, "prot"),
        (POSTGRESQL | {"config": {"metrics": {"token": "hush"}}}, "token"),
        (POSTGRESQL | {"config": {"limits": {"burst": 0}}}, "burst"),
        (POSTGRESQL | {"replica": 3}, "replica"),
        (POSTGRESQL | {"secrets": [{"setting": "server.port", "name": "x", "key": "y"}]},
         "setting"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_name(
    values: dict[str, Any], words: str, tmp_path: Path
) -> None:
    done = rendered(values, tmp_path)
    assert done.returncode != 0
    assert words in done.stderr
