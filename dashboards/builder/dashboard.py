"""A dashboard: rows of panels, variables, links and annotations, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboards.builder.panels import DATASOURCE, FULL, Panel, panel_json
from dashboards.builder.promql import NODES

TAG = "carteiro"
SCHEMA = 39
"""The version of the format, Grafana 11; newer ones read it."""
RUNBOOK = "docs/runbook.md"
"""Where the runbook is, until `$runbook` says where you publish it."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading; they fill lines of 24 columns from left to right."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice of label values, besides data source, job and instance."""

    name: str
    label: str
    query: str
    every: str = ""
    """The pattern that `All` stands for; empty for the list of all values."""
    hidden: bool = False
    """Whether it is no choice, and has the first value."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard; `name` names its file and ends its uid."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()

    @property
    def uid(self) -> str:
        return f"{TAG}-{self.name}"


BASE = (
    Variable("job", "Installation", "label_values(outbox_slots, job)"),
    Variable("instance", "Node", 'label_values(outbox_slots{job=~"$job"}, instance)'),
    Variable(
        "console", "Console", 'label_values(app_build_info{job=~"$job"}, console)', hidden=True
    ),
)


def dashboard_json(dashboard: Dashboard) -> dict[str, Any]:
    """Return the JSON of a dashboard, as Grafana imports and provisions it."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": [TAG],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "links": _links(),
        "annotations": {"list": _annotations()},
        "templating": {"list": _variables(dashboard)},
        "panels": _panels(dashboard.rows),
    }


def _panels(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    placed: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        where = {"x": 0, "y": y, "w": FULL, "h": 1}
        placed.append(
            {"id": len(placed) + 1, "type": "row", "title": row.title, "collapsed": False,
             "gridPos": where, "panels": []}
        )  # fmt: skip
        y += 1
        x = line = 0
        for panel in row.panels:
            if x + panel.width > FULL:
                y, x, line = y + line, 0, 0
            placed.append(panel_json(panel, len(placed) + 1, x, y))
            x += panel.width
            line = max(line, panel.height)
        y += line
    return placed


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    source = {"type": "datasource", "query": "prometheus", "multi": False, "includeAll": False}
    runbook = {"type": "constant", "query": RUNBOOK}
    return [
        {"name": "datasource", "label": "Data source", "hide": 0} | source,
        *map(_variable, (*BASE, *dashboard.variables)),
        {"name": "runbook", "label": "Runbook", "hide": 2} | runbook,
    ]


def _variable(variable: Variable) -> dict[str, Any]:
    common = {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": variable.query,
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
    }
    if variable.hidden:
        return common | {"hide": 2, "multi": False, "includeAll": False}
    return common | {
        "hide": 0,
        "multi": True,
        "includeAll": True,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        **({"allValue": variable.every} if variable.every else {}),
    }


def _links() -> list[dict[str, Any]]:
    common = {"icon": "external link", "tooltip": "", "keepTime": True, "includeVars": True}
    others = {"type": "dashboards", "title": "Dashboards", "tags": [TAG], "asDropdown": True}
    runbook = {
        "type": "link",
        "title": "Runbook",
        "url": "$runbook",
        "tags": [],
        "asDropdown": False,
    }
    return [common | others, common | runbook | {"targetBlank": True}]


def _annotations() -> list[dict[str, Any]]:
    """Return marks of starts, at the time of the start, and of versions not seen before."""
    versions = f"count by (version) (app_build_info{{{NODES}}})"
    earlier = f"count by (version) (app_build_info{{{NODES}}} offset 2m)"
    return [
        _annotation(
            "Starts", "orange", f"process_start_time_seconds{{{NODES}}} * 1000", "{{instance}}"
        )
        | {"useValueForTime": "on"},
        _annotation("Versions", "purple", f"{versions} unless {earlier}", "{{version}}"),
    ]


def _annotation(name: str, colour: str, expr: str, text: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": colour,
        "expr": expr,
        "titleFormat": name,
        "textFormat": text,
        "step": "30s",
    }
