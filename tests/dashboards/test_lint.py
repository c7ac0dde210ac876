"""The dashboards keep the rules of tests.dashboards.lint; each rule is shown to find its fault."""

from __future__ import annotations

from typing import Any

import pytest

from dashboards.builder.collection import FOLDER, texts
from tests.architecture.tree import ROOT
from tests.dashboards import documents, lint
from tests.dashboards.documents import Expression

FILES = ("api.json", "delivery.json", "overview.json", "runtime.json", "webhooks.json")


def test_the_files_are_what_the_builder_makes() -> None:
    written = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    assert sorted(written) == sorted(FILES)
    assert written == texts(), "run `make dashboards`"


def test_the_docs_have_a_picture_of_each_dashboard() -> None:
    wanted = {f"{name.removesuffix('.json')}.png" for name in documents.dashboards()}
    sizes = {
        path.name: path.stat().st_size for path in (ROOT / "docs/pictures/dashboards").iterdir()
    }
    assert sizes.keys() == wanted, "run `make pictures`"
    assert {name: size for name, size in sizes.items() if size > 300_000} == {}
    page = (ROOT / "docs/how-to/watch.md").read_text()
    assert [name for name in wanted if f"/pictures/dashboards/{name})" not in page] == []


@pytest.mark.parametrize("name", FILES)
def test_no_fault(name: str) -> None:
    assert lint.faults(documents.dashboards()[name]) == []


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
    # Each alert has a section in the runbook, see test_rules.py.
    alerts = {rule["alert"] for rule in documents.rules("alerts.yml")}
    there = {f"/d/{board['uid']}" for board in boards}
    there |= {f"${{runbook}}#{alert.lower()}" for alert in alerts}
    links = [link for board in boards for panel in documents.panels(board)
             for link in panel["links"]]  # fmt: skip
    assert [link for link in links if link["url"].partition("?")[0] not in there] == []


@pytest.mark.parametrize(
    ("fault", "change"),
    [
        (": title", {"title": ""}),
        (": no description", {"description": "Slots."}),
        (": unit", {"fieldConfig": {"defaults": {}}}),
        (": unit", {"fieldConfig": {"defaults": {"unit": "furlongs"}}}),
        (": no query", {"targets": []}),
    ],
)
def test_faults_of_a_panel_are_found(fault: str, change: dict[str, Any]) -> None:
    panel = documents.panels(documents.dashboards()["delivery.json"])[0]
    [found] = lint.of_panels({"panels": [panel | change]})
    assert fault in found
    assert [*lint.of_panels({"panels": [panel, panel]})] == [f"2 panels: {panel['title']}"]


NODES = 'job=~"$job",instance=~"$instance"'


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("unclosed left", "sum("),
        ("__nothing", f"rate(outbox_events_total{{{NODES}}}[$__nothing])"),
        ("events_written is not exported", f"events_written{{{NODES}}}"),
        ("has no label colour", f'outbox_slots{{{NODES},colour="red"}}'),
        ("grouped by colour", f"sum by (colour) (outbox_slots{{{NODES}}})"),
        ("rate without", f"rate(outbox_events_total{{{NODES}}}[5m])"),
        ("increase without", f"increase(outbox_events_total{{{NODES}}}[$__rate_interval])"),
        ("avg_over_time over a time", f"avg_over_time(outbox_slots{{{NODES}}}[5m])"),
        ("of the gauge", f"rate(outbox_slots{{{NODES}}}[$__rate_interval])"),
        ("without rate", f"outbox_events_total{{{NODES}}}"),
        ("without job", 'outbox_slots{instance=~"$instance"}'),
        ("without job", "outbox_deliveries"),
        ("without instance", 'outbox_slots{job=~"$job"}'),
    ],
)
def test_faults_of_a_query_are_found(fault: str, text: str) -> None:
    found = list(lint.of_query(Expression("x", text)))
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
