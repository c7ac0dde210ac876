"""The pictures of the dashboards in the docs: `python -m tests.dashboards.pictures [SECONDS]`.

Two nodes on PostgreSQL under changing load, a real Prometheus, the queries of the dashboards; only
the drawing is ours.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.architecture.tree import ROOT
from tests.dashboards import documents
from tests.dashboards.drawing import Answers, draw
from tests.dashboards.live import Watched, watched

FOLDER = ROOT / "docs" / "pictures" / "dashboards"
SECONDS = 600.0
SEED = 10


async def pictures(found: Watched, folder: Path) -> None:
    """Draw each dashboard from the answers of Prometheus."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, dashboard in documents.dashboards().items():
        answers: dict[int, Answers] = {}
        for panel in documents.panels(dashboard):
            answers[panel["id"]] = {
                target["refId"]: await found.asked(
                    found.filled(target["expr"]), instant=target["instant"]
                )
                for target in panel["targets"]
            }
        draw(dashboard, answers, folder / f"{name.removesuffix('.json')}.png")


async def main(seconds: float) -> None:
    """Load, scrape, ask and draw."""
    async with watched("postgres", seconds, SEED) as found:
        await pictures(found, FOLDER)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
