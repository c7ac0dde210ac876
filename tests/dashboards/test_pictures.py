"""The docs have a picture of each dashboard; figures are written as Grafana writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.dashboards import documents
from tests.dashboards.drawing import Answers, draw, merged
from tests.dashboards.figures import shown
from tests.dashboards.pictures import FOLDER

LARGEST = 300_000


def test_the_docs_have_a_picture_of_each_dashboard() -> None:
    wanted = {f"{name.removesuffix('.json')}.png" for name in documents.dashboards()}
    sizes = {path.name: path.stat().st_size for path in FOLDER.iterdir()}
    assert sizes.keys() == wanted, "run `make pictures`"
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
    page = (ROOT / "docs" / "how-to/watch.md").read_text()
    assert [name for name in wanted if f"/pictures/dashboards/{name})" not in page] == []


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.0, "s", None, "0 s"),
        (0.0042, "s", None, "4.20 ms"),
        (90, "s", None, "1.50 min"),
        (0.9987, "percentunit", 3, "99.870%"),
        (1536, "bytes", None, "1.50 KiB"),
        (2_170, "short", None, "2.17 K"),
        (12, "reqps", None, "12 req/s"),
        (0.25, "ops", None, "0.25 ops/s"),
        (float("nan"), "s", None, "NaN"),
    ],
)
def test_figures(value: float, unit: str, decimals: int | None, text: str) -> None:
    assert shown(value, unit, decimals) == text


def test_rows_of_a_table_are_merged_by_the_labels_that_they_share() -> None:
    answers = {
        "A": [{"metric": {"webhook": "w1"}, "value": [1, "3"]}],
        "B": [
            {"metric": {"webhook": "w1"}, "value": [1, "7"]},
            {"metric": {"webhook": "w2"}, "value": [1, "9"]},
        ],
        "C": [{"metric": {"webhook": "w1", "host": "a.example"}, "value": [1, "1"]}],
    }
    assert merged(answers, ["webhook", "host"]) == [
        {"webhook": "w1", "host": "a.example", "Value #A": 3.0, "Value #B": 7.0, "Value #C": 1.0},
        {"webhook": "w2", "Value #B": 9.0},
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delivery.json", "overview.json", "webhooks.json"])
def test_every_kind_of_panel_can_be_drawn(name: str, tmp_path: Path) -> None:
    dashboard = documents.dashboards()[name]
    shown = [panel for panel in dashboard["panels"] if panel["gridPos"]["y"] < 28]
    full: dict[int, Answers] = {
        panel["id"]: {target["refId"]: _series(target) for target in panel["targets"]}
        for panel in documents.panels({"panels": shown})
    }
    none: dict[int, Answers] = {number: {"A": []} for number in full}
    for answers, file in ((full, "full.png"), (none, "none.png")):
        draw(dashboard | {"panels": shown}, answers, tmp_path / file)
    assert (tmp_path / "full.png").stat().st_size > (tmp_path / "none.png").stat().st_size > 0


def _series(target: dict[str, Any]) -> list[dict[str, Any]]:
    if target["instant"]:
        return [{"metric": {"webhook": "w1"}, "value": [1, "3"]}]
    bounds = ("0.1", "1.0", "+Inf")
    return [
        {"metric": {"le": bound}, "values": [[1_800_000_000 + at, str(at)] for at in range(60)]}
        for bound in bounds
    ]
