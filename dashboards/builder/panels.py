"""Panels of a dashboard, and their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dashboards.builder.promql import quantile

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
FULL = 24
"""Columns of a dashboard."""
GREEN, ORANGE, RED, BLUE = "green", "orange", "red", "blue"

PAGE_OF_WEBHOOK = "${console}/console/webhooks/${__value.raw}"
"""The page of the webhook whose id a cell has; `$console` comes from the nodes."""

Kind = Literal["timeseries", "stat", "heatmap", "table"]
Steps = tuple[tuple[float | None, str], ...]
"""Colours with the value at which each begins; the first begins nowhere."""
PLAIN: Steps = ((None, BLUE),)


@dataclass(frozen=True, slots=True)
class Query:
    """One expression, with the name of its series (`{{label}}` for a label's value)."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """What a table calls a label or, by its letter, the value of a query."""

    source: str
    name: str
    unit: str = ""
    to: str = ""
    """Where a cell leads; `${__value.raw}` is its value."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; `to` is the uid of the dashboard with its details, `alert` a runbook section."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: Kind = "timeseries"
    width: int = 8
    height: int = 8
    steps: Steps = PLAIN
    lines: bool = False
    """Draw the thresholds as lines."""
    stacked: bool = False
    top: float | None = None
    """The upper end of the axis."""
    decimals: int | None = None
    empty: str = "no data"
    """What it shows instead of a figure that does not exist."""
    columns: tuple[Column, ...] = ()
    sort: str = ""
    to: str = ""
    alert: str = ""
    colours: Mapping[str, str] = field(default_factory=dict)
    """Colours of series by name."""


def quantiles(histogram: str, labels: str = "") -> tuple[Query, ...]:
    """Return queries of the median and of two high quantiles."""
    wanted = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
    return tuple(Query(quantile(q, histogram, labels), name) for q, name in wanted)


def up_to(orange: float, red: float) -> Steps:
    """Return thresholds for a figure that should be small."""
    return ((None, GREEN), (orange, ORANGE), (red, RED))


def at_least(orange: float, green: float) -> Steps:
    """Return thresholds for a figure that should be large."""
    return ((None, RED), (orange, ORANGE), (green, GREEN))


def panel_json(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    """Return the JSON of a panel at a place."""
    instant = panel.kind in ("stat", "table")
    shape = {"heatmap": "heatmap", "table": "table"}.get(panel.kind, "time_series")
    drawn: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "links": _links(panel),
        "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)},
        "options": OPTIONS[panel.kind](panel),
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "format": shape,
                "instant": instant,
                "range": not instant,
            }
            for place, query in enumerate(panel.queries)
        ],
    }
    if panel.kind == "table":
        drawn["transformations"] = _transformations(panel)
    return drawn


def _links(panel: Panel) -> list[dict[str, Any]]:
    links = []
    if panel.to:
        keep = "${datasource:queryparam}&${job:queryparam}&${instance:queryparam}"
        url = f"/d/{panel.to}?{keep}&${{__url_time_range}}"
        links.append({"title": "Details", "url": url, "targetBlank": False})
    if panel.alert:
        url = f"${{runbook}}#{panel.alert.lower()}"
        links.append({"title": f"Runbook: {panel.alert}", "url": url, "targetBlank": True})
    return links


def _defaults(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0 if panel.kind == "timeseries" and panel.top != 0 else None,
        "max": panel.top or None,
        "decimals": panel.decimals,
        "noValue": panel.empty,
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "thresholds": {
            "mode": "absolute",
            "steps": [{"color": colour, "value": value} for value, colour in panel.steps],
        },
    }
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 40 if panel.stacked else 8,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
            "thresholdsStyle": {"mode": "line" if panel.lines else "off"},
        }
    return {name: value for name, value in defaults.items() if value is not None}


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    colours = [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for name, colour in panel.colours.items()
    ]
    units = [
        {
            "matcher": {"id": "byName", "options": column.name},
            "properties": [{"id": "unit", "value": column.unit}],
        }
        for column in panel.columns
        if column.unit
    ]
    links = [
        {
            "matcher": {"id": "byName", "options": column.name},
            "properties": [
                {
                    "id": "links",
                    "value": [{"title": "Console", "url": column.to, "targetBlank": True}],
                }
            ],
        }
        for column in panel.columns
        if column.to
    ]
    return colours + units + links


def _transformations(panel: Panel) -> list[dict[str, Any]]:
    shown = {column.source for column in panel.columns}
    return [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {"Time": True},
                "includeByName": {_source(source): True for source in sorted(shown)},
                "indexByName": {
                    _source(column.source): place for place, column in enumerate(panel.columns)
                },
                "renameByName": {_source(column.source): column.name for column in panel.columns},
            },
        },
    ]


def _source(source: str) -> str:
    """Return Grafana's name of a column: a label as it is, a query's value by its letter."""
    return f"Value #{source}" if len(source) == 1 else source


def _timeseries(panel: Panel) -> dict[str, Any]:
    return {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }


def _stat(panel: Panel) -> dict[str, Any]:
    return {
        "colorMode": "background_solid" if panel.steps is not PLAIN else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "textMode": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }


def _heatmap(panel: Panel) -> dict[str, Any]:
    return {
        "calculate": False,
        "cellGap": 0,
        "color": {"mode": "scheme", "scheme": "Blues", "steps": 64, "exponent": 0.5},
        "tooltip": {"mode": "single", "yHistogram": False},
        "yAxis": {"unit": panel.unit, "reverse": False},
        "legend": {"show": False},
    }


def _table(panel: Panel) -> dict[str, Any]:
    down = [{"displayName": panel.sort, "desc": True}] if panel.sort else []
    return {"showHeader": True, "cellHeight": "sm", "sortBy": down}


OPTIONS = {"timeseries": _timeseries, "stat": _stat, "heatmap": _heatmap, "table": _table}
