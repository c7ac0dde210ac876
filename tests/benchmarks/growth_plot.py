"""The plot of docs/performance.md: rate and p99 along each axis of growth, on each engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.benchmarks.performance_tables import AXES, ENGINES, growth_points

COLOURS = {"sqlite": "#3274d9", "postgres": "#ff780a"}
ROWS = (
    ("events_per_s", "events a second"),
    ("p99_ms", "p99, ms"),
    ("cpu_us", "CPU of a delivery, µs"),
)
"""Key and label; the last is that of node and server together."""
EDGE, PALE = "#d8d9da", "#6c7075"


def draw(figures: Mapping[str, Any], path: Path) -> None:
    """Write the plot; the same figures give the same file."""
    mpl.use("agg")
    with mpl.rc_context({"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure((10, 7.2), facecolor="white", layout="constrained")
        grid = figure.subplots(len(ROWS), len(AXES), squeeze=False)
        for engine, axis, values in growth_points(figures):
            column = list(AXES).index(axis)
            points = [_point(figures[f"{engine}_{axis}_{value}"]) for value in values]
            for row, (key, label) in enumerate(ROWS):
                axes = grid[row][column]
                # Their distances would hide the small ones, and a logarithm has no place for 0.
                axes.plot(
                    range(len(values)), [point[key] for point in points],
                    marker="o", color=COLOURS[engine], label=ENGINES[engine],
                )  # fmt: skip
                axes.set_xticks(range(len(values)), [f"{value:,}" for value in values])
                axes.grid(axis="y", color=EDGE)
                axes.spines[["top", "right"]].set_visible(False)
                if not column:
                    axes.set_ylabel(label)
                if row + 1 == len(ROWS):
                    axes.set_xlabel(AXES[axis], color=PALE)
        for axes in grid.flat:
            # Room for the marker of the highest point.
            axes.set_ylim(0, axes.dataLim.ymax * 1.08)
        grid[0][0].legend(frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _point(found: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of a point with the CPU of a delivery."""
    deliveries = found["deliveries_per_s"] / found["events_per_s"]
    return {**found, "cpu_us": (found["node_cpu_us"] + found["server_cpu_us"]) / deliveries}
