"""The dashboards keep the rules of tests.dashboards.lint; each rule is shown to find its fault."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest

from dashboards.builder.collection import FOLDER, texts
from tests.architecture.tree import ROOT
from tests.dashboards import documents, lint
from tests.dashboards.documents import Expression

FILES = ("api.json", "delivery.json", "overview.json", "runtime.json", "webhooks.json")


def anchors(page: str) -> set[str]:
    """Return the anchors of a page's headings."""
    text = (ROOT / page).read_text()
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


def test_the_files_are_what_the_builder_makes() -> None:
    written = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert sorted(written) == sorted(FILES)
    assert written == texts(), "run `make dashboards`"


@pytest.mark.parametrize("name", FILES)
def test_no_fault(name: str) -> None:
    assert lint.faults(documents.dashboards()[name]) == []


def test_uids_and_titles_are_unique() -> None:
    found = documents.dashboards().values()
    assert len({dashboard["uid"] for dashboard in found}) == len(found)
    assert len({dashboard["title"] for dashboard in found}) == len(found)


def test_rules_read_what_exists() -> None:
    faults = [
        fault
        for condition in documents.conditions()
        for check in (lint.of_series, lint.of_counters)
        for fault in check(condition)
    ]
    assert faults == []


def test_every_metric_is_read_by_a_panel_or_a_rule() -> None:
    boards = documents.dashboards().values()
    used = [query for board in boards for query in documents.queries(board)]
    used += documents.conditions()
    assert list(lint.of_unused(used)) == []
    # The check finds what is missing.
    assert "db_wal_bytes is exported, and no panel and no rule reads it" in lint.of_unused(
        query for query in used if "db_wal_bytes" not in query.text
    )


def test_links_lead_somewhere() -> None:
    boards = documents.dashboards().values()
    uids = {board["uid"] for board in boards}
    alerts = {rule["alert"] for rule in documents.rules("alerts.yml")}
    sections = anchors("docs/runbook.md")
    for board in boards:
        for panel in documents.panels(board):
            for link in panel["links"]:
                if link["url"].startswith("/d/"):
                    assert link["url"].split("?")[0].removeprefix("/d/") in uids, panel["title"]
                else:
                    alert = link["title"].removeprefix("Runbook: ")
                    assert alert in alerts, panel["title"]
                    assert link["url"] == f"${{runbook}}#{alert.lower()}"
                    assert alert.lower() in sections, alert


Board = dict[str, Any]


def panel_of(board: Board) -> Board:
    found: Board = documents.panels(board)[0]
    return found


def expression(text: str) -> Callable[[Board], None]:
    """Replace the first expression of a dashboard."""

    def change(board: Board) -> None:
        panel_of(board)["targets"][0]["expr"] = text

    return change


NODES = 'job=~"$job",instance=~"$instance"'
CHANGES: list[tuple[str, Callable[[Board], Any]]] = [
    ("editable", lambda b: b.update(editable=True)),
    ("uid other", lambda b: b.update(uid="other")),
    ("no description", lambda b: b.update(description="")),
    ("not exactly one variable `datasource`", lambda b: b["templating"]["list"].pop(0)),
    ("no variable job", lambda b: b["templating"]["list"].pop(1)),
    ("no variable instance", lambda b: b["templating"]["list"].pop(2)),
    ("takes one value only", lambda b: b["templating"]["list"][1].update(multi=False)),
    ("another data source", lambda b: b["templating"]["list"][1].update(datasource={})),
    ("another data source", lambda b: b["annotations"]["list"][0].update(datasource={})),
    (": title", lambda b: panel_of(b).update(title="")),
    (": no description", lambda b: panel_of(b).update(description="Slots.")),
    (": unit", lambda b: panel_of(b)["fieldConfig"]["defaults"].pop("unit")),
    (": unit", lambda b: panel_of(b)["fieldConfig"]["defaults"].update(unit="furlongs")),
    (": no query", lambda b: panel_of(b).update(targets=[])),
    ("another data source", lambda b: panel_of(b).update(datasource={"uid": "prom"})),
    ("another data source", lambda b: panel_of(b)["targets"][0].update(datasource={})),
    ("of this title", lambda b: panel_of(b).update(title=documents.panels(b)[1]["title"])),
    ("with the id", lambda b: panel_of(b).update(id=documents.panels(b)[1]["id"])),
    ("past the right edge", lambda b: panel_of(b)["gridPos"].update(x=20)),
    ("covers", lambda b: documents.panels(b)[1]["gridPos"].update(x=2)),
    ("unclosed left", expression("sum(")),
    ("__nothing", expression(f"rate(outbox_events_total{{{NODES}}}[$__nothing])")),
    ("events_written is not exported", expression(f"events_written{{{NODES}}}")),
    ("has no label colour", expression(f'outbox_slots{{{NODES},colour="red"}}')),
    ("grouped by colour", expression(f"sum by (colour) (outbox_slots{{{NODES}}})")),
    ("rate without", expression(f"rate(outbox_events_total{{{NODES}}}[5m])")),
    ("increase without", expression(f"increase(outbox_events_total{{{NODES}}}[$__rate_interval])")),
    ("avg_over_time over a time", expression(f"avg_over_time(outbox_slots{{{NODES}}}[5m])")),
    ("of the gauge", expression(f"rate(outbox_slots{{{NODES}}}[$__rate_interval])")),
    ("without rate", expression(f"outbox_events_total{{{NODES}}}")),
    ("without job", expression('outbox_slots{instance=~"$instance"}')),
    ("without job", expression("outbox_deliveries")),
    ("without instance", expression('outbox_slots{job=~"$job"}')),
]


@pytest.mark.parametrize(
    ("fault", "change"), CHANGES, ids=[f"{n}: {fault}" for n, (fault, _) in enumerate(CHANGES)]
)
def test_each_rule_finds_its_fault(fault: str, change: Callable[[Board], Any]) -> None:
    board = copy.deepcopy(documents.dashboards()["delivery.json"])
    change(board)
    found = lint.faults(board)
    assert any(fault in line for line in found), found


def test_rules_are_for_any_job_and_for_our_nodes_alone() -> None:
    assert [fault for rule in documents.conditions() for fault in lint.of_programs(rule)] == []
    [named] = lint.of_programs(Expression("x", 'outbox_slots{job="carteiro"} > 1'))
    assert named == "x: outbox_slots of a job by its name"
    [foreign] = lint.of_programs(Expression("x", "changes(process_start_time_seconds[15m]) > 3"))
    assert foreign == "x: process_start_time_seconds may be of another program"
    assert not list(
        lint.of_programs(Expression("x", f"up == 0 and on (job, instance) {lint.NODE}"))
    )
    for text in (f"up == 0 and on (job) {lint.NODE}", 'http_requests_total{surface="api"} > 1'):
        assert not list(lint.of_programs(Expression("x", text)))


def test_rules_over_gauges_and_unknown_series_are_found() -> None:
    [wrong] = lint.of_series(Expression("x", "sum(outbox_slot) > 1"))
    assert wrong == "x: outbox_slot is not exported"
