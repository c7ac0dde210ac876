"""The rules for Prometheus: promtool accepts them, each alert fires, is silent and explained."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.dashboards.alerts import ALERTS, Alert
from tests.support.requirements import need

RULES = ROOT / "dashboards"
CASES = sorted((ROOT / "tests" / "dashboards" / "rules").glob("*.yml"))
CASE = re.compile(r"alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:( \[\])?$", re.MULTILINE)
SECTION = re.compile(r"^## (\w+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PARTS = ("**Means.**", "**Look at.**", "**Do.**", "**Over when.**")


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    # Its threads and its garbage collector cost more than the rules.
    environment = os.environ | {"GOMAXPROCS": "1", "GOGC": "800"}
    return subprocess.run(
        [need("promtool"), *map(str, words)],
        capture_output=True, text=True, timeout=600, env=environment,
    )  # fmt: skip


def test_promtool_accepts_the_rules_and_the_example() -> None:
    files = [RULES / "recording.yml", RULES / "alerts.yml"]
    done = promtool("check", "rules", "--lint=all", "--lint-fatal", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    done = promtool("check", "config", RULES / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_amtool_accepts_the_example_and_it_names_alerts_that_exist() -> None:
    file = RULES / "alertmanager.yml"
    done = subprocess.run(
        [need("amtool"), "check-config", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = [alert.name for alert in ALERTS]
    for pattern in re.findall(r'alertname =~? "?([^",\]\n]+)', file.read_text()):
        for part in _alternatives(pattern):
            assert any(re.fullmatch(part, name) for name in names), (pattern, part)


def _alternatives(pattern: str) -> list[str]:
    """Return the names of a pattern like `A|B(C|D)`."""
    found = []
    for word in re.findall(r"(?:\([^)]*\)|[^|])+", pattern):
        head, mark, rest = word.partition("(")
        inner, _, tail = rest.partition(")")
        found += [head + part + tail for part in inner.split("|")] if mark else [word]
    return found


def test_each_alert_has_a_case_that_fires_and_one_that_is_silent() -> None:
    firing: set[str] = set()
    silent: set[str] = set()
    for file in CASES:
        for name, nothing in CASE.findall(file.read_text()):
            (silent if nothing else firing).add(name)
    names = {alert.name for alert in ALERTS}
    assert (firing, silent) == (names, names)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_alerts_fire_and_are_silent(file: Path) -> None:
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_says_who_must_act_and_where_to_read(alert: Alert) -> None:
    # The overview lists the alerts of this application alone.
    assert alert.labels == {"severity": alert.labels["severity"], "application": "carteiro"}
    assert alert.labels["severity"] in ("page", "ticket")
    assert set(alert.annotations) == {"summary", "description", "runbook_url"}
    assert alert.annotations["runbook_url"] == f"docs/runbook.md#{alert.name.lower()}"


def test_each_alert_has_its_section_in_the_runbook() -> None:
    sections = dict(SECTION.findall((ROOT / "docs" / "runbook.md").read_text()))
    names = {alert.name for alert in ALERTS}
    assert names <= set(sections)
    for name in names:
        missing = [part for part in PARTS if part not in sections[name]]
        assert not missing, (name, missing)
