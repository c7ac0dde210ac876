"""The dashboards and rules as Grafana and Prometheus read them, and every expression in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import promql_parser
import yaml

from dashboards.builder.collection import FOLDER

RULE_FILES = ("recording.yml", "alerts.yml")
DURATIONS = {"__rate_interval": "1m", "__range": "1h", "__interval": "15s"}
"""Grafana's variables for durations, with examples."""
VARIABLE = re.compile(r"\$(?:\{(\w+)[^}]*\}|(\w+))")
LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+), (?P<label>\w+)\)")


@dataclass(frozen=True)
class Expression:
    """One expression of PromQL, with the place where it stands."""

    place: str
    text: str
    instant: bool = False
    """Whether Grafana asks for the end of the time range alone."""


def dashboards() -> dict[str, dict[str, Any]]:
    """Return each dashboard by the name of its file."""
    return {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels of a dashboard, without the headings of rows."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries(dashboard: dict[str, Any]) -> Iterator[Expression]:
    """Yield the expressions of the panels, with the place `Dashboard: panel A`."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            place = f"{dashboard['title']}: {panel['title']} {target['refId']}"
            yield Expression(place, target["expr"], target["instant"])


def marks(dashboard: dict[str, Any]) -> Iterator[Expression]:
    """Yield the expressions of the annotations."""
    for annotation in dashboard["annotations"]["list"]:
        yield Expression(f"{dashboard['title']}: {annotation['name']}", annotation["expr"])


def choices(dashboard: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the selector and the label of each variable that Prometheus fills."""
    found = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            match = LABEL_VALUES.fullmatch(variable["definition"])
            assert match, variable["definition"]
            found[variable["name"]] = (match["selector"], match["label"])
    return found


@cache
def rules(name: str) -> list[dict[str, Any]]:
    """Return the rules of a file, those of all groups."""
    document = yaml.safe_load((FOLDER / name).read_text())
    return [rule for group in document["groups"] for rule in group["rules"]]


def conditions() -> Iterator[Expression]:
    """Yield the expressions of the rules."""
    for name in RULE_FILES:
        for rule in rules(name):
            yield Expression(f"{name}: {rule.get('record') or rule.get('alert')}", rule["expr"])


def filled(text: str, values: dict[str, str]) -> str:
    """Return `text` with Grafana's variables replaced; an unknown one is a KeyError."""
    return VARIABLE.sub(lambda found: values[found[1] or found[2]], text)


@cache
def parsed(text: str) -> promql_parser.Expr:
    """Parse an expression of a panel or a rule. Raise ValueError."""
    names = {name: f"${name}" for name in ("job", "instance", "webhook", "host")}
    tree: promql_parser.Expr = promql_parser.parse(filled(text, DURATIONS | names))
    return tree


def nodes(tree: promql_parser.Expr) -> list[promql_parser.Expr]:
    """Return every part of an expression."""
    found: list[promql_parser.Expr] = []
    promql_parser.walk(tree, lambda part: found.append(part))
    return found


def selectors(text: str) -> list[promql_parser.VectorSelector]:
    """Return the selectors of an expression, also those with a range."""
    return [part for part in nodes(parsed(text)) if isinstance(part, promql_parser.VectorSelector)]


def names(text: str) -> set[str]:
    """Return the names of the series that an expression reads."""
    return {selector.name or "" for selector in selectors(text)}
