"""Every kind of panel can be drawn, with answers and without; the pictures are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dashboards import documents
from tests.dashboards.pictures import Answers, draw


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
