"""The manifests of docs/deploy/kubernetes are valid, complete, and have settings that exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.server.config import load
from gateway.server.program import program_version
from tests.architecture.tree import ROOT

FOLDER = ROOT / "docs" / "deploy" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
MANIFESTS = [FOLDER / name for name in KUSTOMIZATION["resources"]]


def manifest(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return loaded


def pods() -> dict[str, dict[str, Any]]:
    """Return the specification of each kind of pod."""
    names = ("deployment.yaml", "migrate.yaml")
    return {name: manifest(name)["spec"]["template"]["spec"] for name in names}


def validated(*files: Path) -> subprocess.CompletedProcess[str]:
    tool = Path(sys.executable).parent / "kubernetes-validate"
    return subprocess.run(
        [tool, "--strict", *files], capture_output=True, text=True, timeout=60, check=False
    )


def test_every_manifest_is_listed_and_valid() -> None:
    assert {*MANIFESTS, FOLDER / "kustomization.yaml"} == set(FOLDER.glob("*.yaml"))
    done = validated(*MANIFESTS)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_field_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "service.yaml"
    wrong.write_text((FOLDER / "service.yaml").read_text().replace("selector:", "select:"))
    assert validated(wrong).returncode != 0


def test_the_settings_are_valid_and_come_from_what_kustomize_makes() -> None:
    [settings] = KUSTOMIZATION["configMapGenerator"]
    [secret] = KUSTOMIZATION["secretGenerator"]
    environment = dict(literal.split("=", 1) for literal in settings["literals"])
    assert load(None, environment).server.public_url == "https://crm.example.com"
    for name, pod in pods().items():
        [container] = pod["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": settings["name"]}}], name
        [mount] = [m for m in container["volumeMounts"] if m["name"] == "secrets"]
        files = {f"{mount['mountPath']}/{file}" for file in secret["files"]}
        assert {variable["value"] for variable in container["env"]} == files, name
        [volume] = [v for v in pod["volumes"] if v["name"] == "secrets"]
        assert volume["secret"]["secretName"] == secret["name"]


@pytest.mark.parametrize("name", ["carteiro.key", "database-url"])
def test_git_ignores_the_secrets(name: str) -> None:
    done = subprocess.run(["git", "check-ignore", "--quiet", FOLDER / name], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_a_pod_has_no_right_that_it_needs_not() -> None:
    for name, pod in pods().items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        [container] = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip
        # Other users may not read the key file, or Carteiro refuses it.
        [volume] = [v for v in pod["volumes"] if v["name"] == "secrets"]
        assert volume["secret"]["defaultMode"] & 0o007 == 0


def test_a_pod_has_the_time_to_end_and_the_image_of_this_version() -> None:
    pod = pods()["deployment.yaml"]
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
