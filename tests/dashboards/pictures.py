"""The pictures of the dashboards in the docs: `python -m tests.dashboards.pictures [SECONDS]`.

Two nodes on PostgreSQL under changing load, a real Prometheus, the queries of the dashboards. Only
the drawing is ours: no package of Grafana exists for it. It shows what Grafana would show, not how.
"""

from __future__ import annotations

import asyncio
import io
import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, MultipleLocator
from PIL import Image

from tests.architecture.tree import ROOT
from tests.dashboards import documents
from tests.dashboards.test_live import has_data, watched

SCALES: dict[str, Sequence[tuple[float, str]]] = {
    "s": (
        (86_400, " d"), (3_600, " h"), (60, " min"), (1, " s"), (1e-3, " ms"), (1e-6, " µs"),
    ),
    "bytes": ((2**30, " GiB"), (2**20, " MiB"), (2**10, " KiB"), (1, " B")),
    "none": ((1, ""),),
    "short": ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K"), (1, "")),
    "reqps": ((1e3, " K req/s"), (1, " req/s")),
    "ops": ((1e3, " K ops/s"), (1, " ops/s")),
}  # fmt: skip


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """Return a number with its unit, scaled to be read."""
    if math.isnan(value):
        return "NaN"
    if unit == "percentunit":
        return f"{_digits(value * 100, decimals)}%"
    scales = SCALES[unit]
    fitting = [scale for scale in scales if abs(value) >= scale[0]] or [scales[-1]]
    size, name = fitting[0] if value else (1, dict(scales)[1])
    return f"{_digits(value / size, decimals)}{name}"


def _digits(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    digits = 0 if abs(value) >= 100 or value == round(value) else 1 if abs(value) >= 10 else 2
    return f"{value:.{digits}f}"


mpl.use("agg")
Answers = Mapping[str, list[dict[str, Any]]]
"""The series of each query of a panel, by its letter."""

FOLDER = ROOT / "docs" / "pictures" / "dashboards"
SECONDS = 600.0
SEED = 10
COLUMN, LINE, HEAD, DPI = 0.66, 0.29, 0.62, 90
"""Inches of a column and of a line of the grid, and of the head; dots of an inch."""
PAGE, PAPER, EDGE, INK, PALE = "#f4f5f5", "#ffffff", "#d8d9da", "#24292e", "#6c7075"
COLOURS = {"green": "#56a64b", "orange": "#ff780a", "red": "#e02f44", "blue": "#3274d9"}
CYCLE = (
    "#3274d9", "#ff780a", "#56a64b", "#a352cc", "#f2cc0c", "#e02f44", "#37872d", "#8ab8ff",
    "#8f3bb8", "#c4162a", "#5794f2", "#96d98d",
)  # fmt: skip
COLOURS_KEPT = 96
"""A palette makes the file a third as large."""
ROWS, NAMES = 12, 6
"""The most of a table and of a legend."""
STEPS, MARKS = (60, 120, 300, 600, 1800, 3600), 6
"""Seconds between the times of an axis, and the most of them."""


def draw(dashboard: Mapping[str, Any], answers: Mapping[int, Answers], path: Path) -> None:
    """Write the picture of a dashboard, given the answers of each panel by its id."""
    lines = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"])
    width, height = 24 * COLUMN + 0.06, HEAD + lines * LINE + 0.1
    figure = Figure((width, height), DPI, facecolor=PAGE)

    def write(x: float, y: float, text: str, size: float, colour: str = INK) -> None:
        weight = "bold" if colour == INK else "normal"
        figure.text(x / width, 1 - y / height, text, size=size, weight=weight, color=colour)

    def box(x: float, y: float, wide: float, high: float) -> tuple[float, float, float, float]:
        return x / width, 1 - (y + high) / height, wide / width, high / height

    write(0.13, 0.27, dashboard["title"], 14)
    write(0.13, 0.49, dashboard["description"], 9, PALE)
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        left, top = place["x"] * COLUMN + 0.06, HEAD + place["y"] * LINE + 0.04
        wide, high = place["w"] * COLUMN - 0.08, place["h"] * LINE - 0.08
        if panel["type"] == "row":
            write(left, top + high - 0.06, panel["title"], 10.5)
            continue
        x, y, w, h = box(left, top, wide, high)
        figure.add_artist(Rectangle((x, y), w, h, facecolor=PAPER, edgecolor=EDGE, zorder=-1))
        write(left + 0.08, top + 0.19, panel["title"], 8.5)
        side, foot = (0.1, 0.08) if panel["type"] in ("stat", "table") else (0.74, 0.5)
        inner = box(left + side, top + 0.3, wide - side - 0.12, high - foot - 0.3)
        _panel(figure.add_axes(inner), panel, answers[panel["id"]])
    drawn = io.BytesIO()
    figure.savefig(drawn)
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(COLOURS_KEPT).save(path, optimize=True)


def _panel(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    axes.set_facecolor("none")
    axes.tick_params(labelsize=7, colors=PALE, length=2)
    for side in axes.spines.values():
        side.set_visible(False)
    if not any(map(has_data, answers.values())):
        axes.set_axis_off()
        axes.text(0.5, 0.5, panel["fieldConfig"]["defaults"]["noValue"], ha="center", color=PALE)
        return
    {"stat": _stat, "table": _table, "heatmap": _heatmap, "timeseries": _lines}[panel["type"]](
        axes, panel, answers
    )


def _overrides(panel: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return what a panel sets for single series or columns, by their name."""
    return {
        override["matcher"]["options"]: override["properties"][0]["value"]
        for override in panel["fieldConfig"]["overrides"]
        if override["properties"][0]["id"] == kind
    }


def _named(panel: Mapping[str, Any], answers: Answers) -> list[tuple[str, dict[str, Any]]]:
    """Return each series with its name in the legend."""
    legends = {target["refId"]: target["legendFormat"] for target in panel["targets"]}
    found = []
    for letter, series in answers.items():
        for one in sorted(series, key=lambda some: sorted(some["metric"].items())):
            name, labels = legends[letter], one["metric"]
            if name == "__auto":
                name = ", ".join(f"{label}={value}" for label, value in labels.items())
            for label in (*labels, "__none__"):
                name = name.replace("{{" + label + "}}", labels.get(label, ""))
            found.append((name, one))
    return found


def _stat(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    axes.set_axis_off()
    defaults, fixed = panel["fieldConfig"]["defaults"], _overrides(panel, "color")
    filled = panel["options"]["colorMode"] != "value"
    tiles = _named(panel, answers)
    high = 1 / len(tiles)
    for number, (name, one) in enumerate(tiles):
        value = float(one["value"][1])
        [first, *steps] = defaults["thresholds"]["steps"]
        reached = [first] + [step for step in steps if value >= step["value"]]
        colour = COLOURS[fixed[name]["fixedColor"] if name in fixed else reached[-1]["color"]]
        low = 1 - (number + 1) * high
        if filled:
            axes.add_patch(Rectangle((0, low), 1, high - 0.02, facecolor=colour))
        figure = shown(value, defaults["unit"], defaults.get("decimals"))
        axes.text(
            0.5, low + 0.48 * high, f"{name}  {figure}" if len(tiles) > 1 else figure, ha="center",
            va="center", size=19 if len(tiles) == 1 else 10, weight="bold",
            color=PAPER if filled else colour,
        )  # fmt: skip


def _table(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    axes.set_axis_off()
    organized = panel["transformations"][1]["options"]
    order = sorted(organized["indexByName"], key=organized["indexByName"].__getitem__)
    names, units = organized["renameByName"], _overrides(panel, "unit")
    defaults = panel["fieldConfig"]["defaults"]
    rows = merged(answers, [name for name in order if not name.startswith("Value #")])
    for sort in panel["options"]["sortBy"]:
        [by] = [source for source, name in names.items() if name == sort["displayName"]]
        rows.sort(key=lambda row: -row.get(by, 0.0))

    def cell(row: Mapping[str, Any], source: str) -> str:
        value = row.get(source, "")
        if isinstance(value, str):
            return textwrap.shorten(value, 44, placeholder="…")
        return shown(value, units.get(names[source], defaults["unit"]), defaults.get("decimals"))

    table = axes.table(
        [[cell(row, source) for source in order] for row in rows[:ROWS]],
        colLabels=[names[source] for source in order], loc="upper left", cellLoc="left",
        colLoc="left", edges="horizontal", colWidths=[0.96 / len(order)] * len(order),
    )  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(7.5)
    for (number, _), drawn in table.get_celld().items():
        drawn.set(edgecolor=EDGE, height=0.7 / panel["gridPos"]["h"])
        drawn.get_text().set_color(PALE if number == 0 else INK)


def merged(answers: Answers, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a table, as Grafana merges them: by the labels that both sides have."""
    rows: list[dict[str, Any]] = []
    for letter, series in answers.items():
        for one in series:
            metric = {name: one["metric"][name] for name in labels if name in one["metric"]}
            for row in rows:
                both = metric.keys() & row.keys()
                if both and all(row[name] == metric[name] for name in both):
                    break
            else:
                row = {}
                rows.append(row)
            row |= metric | {f"Value #{letter}": float(one["value"][1])}
    return rows


def _table_of_times(series: Sequence[dict[str, Any]]) -> tuple[list[float], list[list[float]]]:
    """Return the times of several series, and the values of each at these times, or NaN."""
    values = [{float(at): float(value) for at, value in one["values"]} for one in series]
    times = sorted({at for one in values for at in one})
    return times, [[one.get(at, math.nan) for at in times] for one in values]


def _heatmap(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    [series] = answers.values()
    series = sorted(series, key=lambda one: float(one["metric"]["le"]))
    times, counts = _table_of_times(series)
    # Buckets count all that is below them.
    below = [[0.0] * len(times), *counts]
    grid = [
        [math.sqrt(max(count - less, 0.0)) for count, less in zip(row, under, strict=True)]
        for row, under in zip(counts, below, strict=False)
    ]
    axes.pcolormesh(times, range(len(grid)), grid, cmap="Blues", shading="nearest", rasterized=True)
    bounds = [float(one["metric"]["le"]) for one in series]
    unit = panel["fieldConfig"]["defaults"]["unit"]
    names = ["more" if math.isinf(bound) else f"≤ {shown(bound, unit)}" for bound in bounds]
    axes.set_yticks(range(len(bounds)), names, size=6)
    _times(axes)


def _lines(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    defaults, fixed = panel["fieldConfig"]["defaults"], _overrides(panel, "color")
    named = _named(panel, answers)
    # Where points are missing, a line has a gap.
    times, values = _table_of_times([one for _, one in named])
    colours = [
        COLOURS[fixed[name]["fixedColor"]] if name in fixed else CYCLE[number % len(CYCLE)]
        for number, (name, _) in enumerate(named)
    ]
    if defaults["custom"]["stacking"]["mode"] == "normal":
        heights = [[0.0 if math.isnan(value) else value for value in row] for row in values]
        axes.stackplot(times, heights, colors=colours, alpha=0.75)
    else:
        for row, colour in zip(values, colours, strict=True):
            axes.plot(times, row, color=colour, linewidth=1)
    _, top = axes.get_ylim()
    if defaults["custom"]["thresholdsStyle"]["mode"] == "line":
        for step in defaults["thresholds"]["steps"][1:]:
            if step["value"] <= 1.5 * top:
                axes.axhline(step["value"], color=COLOURS[step["color"]], lw=0.9, ls="--")
    if "min" in defaults:
        nothing = not any(value > 0 for row in values for value in row)
        axes.set_ylim(bottom=0, top=defaults.get("max") or (1 if nothing else None))
    axes.grid(visible=True, axis="y", color=EDGE, linewidth=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: shown(value, defaults["unit"]))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    _times(axes)
    names = [textwrap.shorten(name, 26, placeholder="…") for name, _ in named[:NAMES]]
    if len(named) > NAMES:
        names[-1] = f"and {len(named) - NAMES + 1} more"
    axes.legend(
        [Rectangle((0, 0), 1, 1, color=colour) for colour in colours[:NAMES]], names,
        loc="upper left", bbox_to_anchor=(-0.06, -0.12), ncols=NAMES // 2, fontsize=6,
        frameon=False, handlelength=0.9, handleheight=0.4, columnspacing=0.9, borderaxespad=0,
        labelspacing=0.25, labelcolor=INK,
    )  # fmt: skip


def _times(axes: Axes) -> None:
    axes.margins(x=0)
    start, end = axes.get_xlim()
    step = next((step for step in STEPS if (end - start) / step <= MARKS), end - start)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(lambda at, _: datetime.fromtimestamp(at, UTC).strftime("%H:%M"))


async def main(seconds: float) -> None:
    """Load, scrape, ask and draw."""
    async with watched("postgres", seconds, SEED) as found:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, dashboard in documents.dashboards().items():
            answers: dict[int, Answers] = {
                panel["id"]: {
                    target["refId"]: await found.asked(target["expr"], instant=target["instant"])
                    for target in panel["targets"]
                }
                for panel in documents.panels(dashboard)
            }
            draw(dashboard, answers, FOLDER / f"{name.removesuffix('.json')}.png")


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
