"""The dashboards load in the schema that Grafana publishes, which knows every field of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from enum import Enum
from typing import Any, get_args, get_type_hints

import pytest
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.dashboards import documents

BEYOND = {"definition", "titleFormat", "textFormat", "step", "useValueForTime"}
"""Fields of queries that belong to the data source Prometheus; the schema leaves these open."""
FILES = sorted(documents.dashboards())

plugins.register_default_plugins()


def loaded(board: dict[str, Any]) -> dict[str, Any]:
    """Return what Grafana's own types make of a dashboard. Raise ValueError."""
    read = Dashboard.from_json(board)
    _must_be_chosen(read)
    made: dict[str, Any] = json.loads(json.dumps(read, cls=JSONEncoder))
    return made


def _must_be_chosen(read: Any) -> None:
    """Raise ValueError for a value that is none of its enumeration; the types do not look."""
    if isinstance(read, list):
        for one in read:
            _must_be_chosen(one)
    if not type(read).__module__.startswith("grafana_foundation_sdk"):
        return
    for name, hint in get_type_hints(type(read)).items():
        value = getattr(read, name)
        for choice in (hint, *get_args(hint)):
            if isinstance(choice, type) and issubclass(choice, Enum) and value is not None:
                choice(value)
        _must_be_chosen(value)


def lost(ours: Any, theirs: Any, place: str = "") -> Iterator[str]:
    """Yield what the schema does not know, or knows as something else."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            if name in theirs:
                yield from lost(value, theirs[name], f"{place}.{name}")
            elif value not in (None, "", [], {}) and name not in BEYOND:
                yield f"{place}.{name} is not in the schema"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif ours != theirs:
        yield f"{place} is {ours!r}, and {theirs!r} in the schema"


@pytest.mark.parametrize("name", FILES)
def test_grafana_knows_every_field(name: str) -> None:
    board = documents.dashboards()[name]
    assert list(lost(board, loaded(board))) == []


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    board = copy.deepcopy(documents.dashboards()["overview.json"])
    stat = next(panel for panel in board["panels"] if panel["type"] == "stat")
    stat["options"]["colourMode"] = "value"
    stat["fieldConfig"]["defaults"]["noValues"] = "none"
    found = list(lost(board, loaded(board)))
    assert [line.rpartition(".")[2] for line in sorted(found)] == [
        "noValues is not in the schema", "colourMode is not in the schema",
    ]  # fmt: skip


def test_a_value_that_grafana_does_not_know_is_refused() -> None:
    board = copy.deepcopy(documents.dashboards()["overview.json"])
    board["graphTooltip"] = 17
    with pytest.raises(ValueError, match="17"):
        loaded(board)
