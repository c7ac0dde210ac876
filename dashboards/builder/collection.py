"""All dashboards and their files."""

from __future__ import annotations

import json
from pathlib import Path

from dashboards.builder.api import API
from dashboards.builder.dashboard import Dashboard, dashboard_json
from dashboards.builder.delivery import DELIVERY
from dashboards.builder.overview import OVERVIEW
from dashboards.builder.runtime import RUNTIME
from dashboards.builder.webhooks import WEBHOOKS

FOLDER = Path(__file__).resolve().parents[1]
DASHBOARDS = (OVERVIEW, DELIVERY, WEBHOOKS, API, RUNTIME)


def text_of(dashboard: Dashboard) -> str:
    """Return the text of a dashboard's file."""
    return json.dumps(dashboard_json(dashboard), indent=1, ensure_ascii=False) + "\n"


def texts() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {f"{dashboard.name}.json": text_of(dashboard) for dashboard in DASHBOARDS}
