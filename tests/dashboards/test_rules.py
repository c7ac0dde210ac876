"""The rules for Prometheus: promtool accepts them, each alert fires, is silent and explained."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.dashboards import documents
from tests.support.requirements import need

RULES = ROOT / "dashboards"
ALERTS = {rule["alert"]: rule for rule in documents.rules("alerts.yml")}
CASES = sorted((ROOT / "tests" / "dashboards" / "rules").glob("*.yml"))
CASE = re.compile(r"alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:( \[\])?$", re.MULTILINE)
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PARTS = ("**Means.**", "**Look at.**", "**Do.**", "**Over when.**")


def accepted(program: str, *words: str | Path) -> None:
    # The threads and the garbage collector of these programs cost more than their work.
    environment = os.environ | {"GOMAXPROCS": "1", "GOGC": "800"}
    done = subprocess.run(
        [need(program), *map(str, words)],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_rules_and_the_example() -> None:
    files = [RULES / "recording.yml", RULES / "alerts.yml"]
    accepted("promtool", "check", "rules", "--lint=all", "--lint-fatal", *files)
    accepted("promtool", "check", "config", RULES / "prometheus.yml")


def test_amtool_accepts_the_example_and_it_names_alerts_that_exist() -> None:
    file = RULES / "alertmanager.yml"
    accepted("amtool", "check-config", file)
    for pattern in re.findall(r'alertname =~? "?([^",\]\n]+)', file.read_text()):
        for part in re.findall(r"(?:\([^)]*\)|[^|])+", pattern):
            # In `A|B(C|D)`, each alternative of a group is to match too.
            head, inner, tail = re.findall(r"(\w*)(?:\(([^)]*)\))?(.*)", part)[0]
            for name in (head + middle + tail for middle in inner.split("|")):
                assert any(re.fullmatch(name, alert) for alert in ALERTS), (pattern, name)


def test_each_alert_has_a_case_that_fires_and_one_that_is_silent() -> None:
    cases = [case for file in CASES for case in CASE.findall(file.read_text())]
    assert {name for name, nothing in cases if not nothing} == ALERTS.keys()
    assert {name for name, nothing in cases if nothing} == ALERTS.keys()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_alerts_fire_and_are_silent(file: Path) -> None:
    accepted("promtool", "test", "rules", file)


def test_each_alert_says_who_must_act_and_has_its_section_in_the_runbook() -> None:
    sections = dict(SECTION.findall((ROOT / "docs" / "runbook.md").read_text()))
    for name, alert in ALERTS.items():
        labels, annotations = alert["labels"], alert["annotations"]
        # The overview lists the alerts of this application alone.
        assert labels == {"severity": labels["severity"], "application": "carteiro"}, name
        assert labels["severity"] in ("page", "ticket"), name
        assert set(annotations) == {"summary", "description", "runbook_url"}, name
        assert annotations["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        assert [part for part in PARTS if part not in sections[name]] == [], name
