"""Draw a dashboard with matplotlib: each panel at its place, from the answers to its queries.

It shows what Grafana would show, not how: no package of Grafana exists for tests.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator, MultipleLocator
from PIL import Image

from tests.dashboards.figures import shown
from tests.dashboards.live import has_data

mpl.use("agg")
Answers = Mapping[str, list[dict[str, Any]]]
"""The series of each query of a panel, by its letter."""

COLUMN, LINE = 0.66, 0.29
"""Inches of a column and of a line of the grid."""
HEAD = 0.62
DPI = 90
PAGE, PAPER, EDGE, INK, PALE = "#f4f5f5", "#ffffff", "#d8d9da", "#24292e", "#6c7075"
COLOURS = {"green": "#56a64b", "orange": "#ff780a", "red": "#e02f44", "blue": "#3274d9"}
CYCLE = (
    "#3274d9", "#ff780a", "#56a64b", "#a352cc", "#f2cc0c", "#e02f44", "#37872d", "#8ab8ff",
    "#8f3bb8", "#c4162a", "#5794f2", "#96d98d",
)  # fmt: skip
LINES = 2
"""Lines of a legend."""
COLOURS_KEPT = 96
ROWS = 12
STEPS, MARKS = (60, 120, 300, 600, 1800, 3600), 6
"""Seconds between the times of an axis, and the most of them."""
TABLE = 0.96
"""The part of its panel that a table takes: 2% are empty on its left side."""


def draw(dashboard: Mapping[str, Any], answers: Mapping[int, Answers], path: Path) -> None:
    """Write the picture of a dashboard, given the answers of each panel by its id."""
    lines = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in dashboard["panels"])
    width, height = 24 * COLUMN + 0.06, HEAD + lines * LINE + 0.1
    figure = Figure((width, height), DPI, facecolor=PAGE)
    figure.text(0.008, 1 - 0.27 / height, dashboard["title"], size=14, weight="bold", color=INK)
    figure.text(0.008, 1 - 0.49 / height, dashboard["description"], size=9, color=PALE)
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        left, top = place["x"] * COLUMN + 0.06, HEAD + place["y"] * LINE + 0.04
        wide, high = place["w"] * COLUMN - 0.08, place["h"] * LINE - 0.08
        box = (left / width, 1 - (top + high) / height, wide / width, high / height)
        if panel["type"] == "row":
            figure.text(box[0], box[1] + 0.06 / height, panel["title"], size=10.5, weight="bold",
                        color=INK)  # fmt: skip
            continue
        figure.add_artist(
            Rectangle((box[0], box[1]), box[2], box[3], facecolor=PAPER, edgecolor=EDGE, zorder=-1)
        )
        figure.text(box[0] + 0.08 / width, box[1] + box[3] - 0.19 / height, panel["title"],
                    size=8.5, weight="bold", color=INK)  # fmt: skip
        inner = (0.1, 0.08) if panel["type"] in ("stat", "table") else (0.74, 0.5)
        axes = figure.add_axes((
            box[0] + inner[0] / width, box[1] + inner[1] / height,
            box[2] - (inner[0] + 0.12) / width, box[3] - (inner[1] + 0.3) / height,
        ))  # fmt: skip
        _panel(axes, panel, answers[panel["id"]])
    drawn = io.BytesIO()
    figure.savefig(drawn)
    with Image.open(drawn) as picture:
        # A palette makes the file a third as large.
        picture.convert("RGB").quantize(COLOURS_KEPT).save(path, optimize=True)


def _panel(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    axes.set_facecolor("none")
    axes.tick_params(labelsize=7, colors=PALE, length=2)
    for side in axes.spines.values():
        side.set_visible(False)
    if not any(map(has_data, answers.values())):
        axes.set_axis_off()
        text = panel["fieldConfig"]["defaults"]["noValue"]
        axes.text(0.5, 0.5, text, ha="center", va="center", color=PALE, size=9,
                  transform=axes.transAxes)  # fmt: skip
        return
    {"stat": _stat, "table": _table, "heatmap": _heatmap, "timeseries": _lines}[panel["type"]](
        axes, panel, answers
    )


def _stat(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    axes.set_axis_off()
    defaults = panel["fieldConfig"]["defaults"]
    named = {
        override["matcher"]["options"]: override["properties"][0]["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
        if override["properties"][0]["id"] == "color"
    }
    legends = {target["refId"]: target["legendFormat"] for target in panel["targets"]}
    tiles = [
        (_name(legends[letter], one["metric"]), float(one["value"][1]))
        for letter, series in answers.items() for one in series
    ]  # fmt: skip
    filled = panel["options"]["colorMode"] != "value"
    for number, (name, value) in enumerate(tiles):
        colour = named.get(name) or _threshold(defaults["thresholds"]["steps"], value)
        high = 1 / len(tiles)
        low = 1 - (number + 1) * high
        if filled:
            axes.add_patch(
                Rectangle(
                    (0, low), 1, high - 0.02, transform=axes.transAxes, facecolor=COLOURS[colour]
                )
            )
        figure = shown(value, defaults["unit"], defaults.get("decimals"))
        axes.text(
            0.5, low + 0.48 * high, f"{name}  {figure}" if len(tiles) > 1 else figure, ha="center",
            va="center", size=19 if len(tiles) == 1 else 10, weight="bold",
            color=PAPER if filled else COLOURS[colour], transform=axes.transAxes,
        )  # fmt: skip


def _threshold(steps: Sequence[Mapping[str, Any]], value: float) -> str:
    reached = [step for step in steps[1:] if value >= step["value"]]
    colour: str = (reached or steps[:1])[-1]["color"]
    return colour


def _table(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    axes.set_axis_off()
    organized = panel["transformations"][1]["options"]
    order = sorted(organized["indexByName"], key=organized["indexByName"].__getitem__)
    units = {
        override["matcher"]["options"]: override["properties"][0]["value"]
        for override in panel["fieldConfig"]["overrides"]
        if override["properties"][0]["id"] == "unit"
    }
    default = panel["fieldConfig"]["defaults"]["unit"]
    decimals = panel["fieldConfig"]["defaults"].get("decimals")
    labels = [name for name in order if not name.startswith("Value #")]
    sort = panel["options"]["sortBy"]
    names = organized["renameByName"]
    shown_rows = merged(answers, labels)
    if sort:
        [by] = [source for source, name in names.items() if name == sort[0]["displayName"]]
        shown_rows.sort(key=lambda row: -row.get(by, 0.0))
    cells = [
        [
            textwrap.shorten(str(row.get(source, "")), 44, placeholder="…")
            if source in labels
            else shown(row[source], units.get(names[source], default), decimals)
            if source in row
            else ""
            for source in order
        ]
        for row in shown_rows[:ROWS]
    ]
    table = axes.table(
        cells, colLabels=[names[source] for source in order], loc="upper left", cellLoc="left",
        colLoc="left", edges="horizontal", colWidths=[TABLE / len(order)] * len(order),
    )  # fmt: skip
    table.auto_set_font_size(False)
    table.set_fontsize(7.5)
    for (number, _), cell in table.get_celld().items():
        cell.set_edgecolor(EDGE)
        cell.set_height(0.1 * 7 / panel["gridPos"]["h"])
        cell.get_text().set_color(PALE if number == 0 else INK)


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


def _heatmap(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    [series] = answers.values()
    series = sorted(series, key=lambda one: float(one["metric"]["le"]))
    times = sorted({float(at) for one in series for at, _ in one["values"]})
    place = {at: number for number, at in enumerate(times)}
    grid: list[list[float]] = []
    below = [0.0] * len(times)
    for one in series:
        counts = list(below)
        for at, value in one["values"]:
            counts[place[float(at)]] = float(value)
        # Buckets count all that is below them.
        grid.append([max(count - less, 0.0) for count, less in zip(counts, below, strict=True)])
        below = counts
    mesh = axes.pcolormesh(
        times, range(len(grid)), [[math.sqrt(cell) for cell in row] for row in grid], cmap="Blues",
        shading="nearest",
    )  # fmt: skip
    mesh.set_rasterized(True)
    unit = panel["fieldConfig"]["defaults"]["unit"]
    bounds = [float(one["metric"]["le"]) for one in series]
    axes.set_yticks(
        range(len(bounds)),
        ["more" if math.isinf(bound) else f"≤ {shown(bound, unit)}" for bound in bounds],
        size=6,
    )
    _times(axes)


def _lines(axes: Axes, panel: Mapping[str, Any], answers: Answers) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    fixed = {
        override["matcher"]["options"]: override["properties"][0]["value"]["fixedColor"]
        for override in panel["fieldConfig"]["overrides"]
    }
    names: list[str] = []
    drawn: list[tuple[list[float], list[float], str]] = []
    legends = {target["refId"]: target["legendFormat"] for target in panel["targets"]}
    for letter, series in answers.items():
        for one in sorted(series, key=lambda found: sorted(found["metric"].items())):
            name = _name(legends[letter], one["metric"])
            colour = COLOURS.get(fixed.get(name, ""), CYCLE[len(names) % len(CYCLE)])
            names.append(name)
            drawn.append((
                [float(at) for at, _ in one["values"]],
                [float(value) for _, value in one["values"]], colour,
            ))  # fmt: skip
    if defaults["custom"]["stacking"]["mode"] == "normal":
        _stack(axes, drawn)
    else:
        for xs, ys, colour in drawn:
            axes.plot(*_broken(xs, ys), color=colour, linewidth=1)
    _, top = axes.get_ylim()
    if defaults["custom"]["thresholdsStyle"]["mode"] == "line":
        for step in defaults["thresholds"]["steps"][1:]:
            if step["value"] <= 1.5 * top:
                axes.axhline(step["value"], color=COLOURS[step["color"]], linewidth=0.9,
                             linestyle="--")  # fmt: skip
    if "min" in defaults:
        nothing = not any(value > 0 for _, ys, _ in drawn for value in ys)
        axes.set_ylim(bottom=0, top=defaults.get("max") or (1 if nothing else None))
    axes.grid(visible=True, axis="y", color=EDGE, linewidth=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: shown(value, defaults["unit"]))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    _times(axes)
    _legend(axes, names, [colour for _, _, colour in drawn])


def _broken(xs: list[float], ys: list[float]) -> tuple[list[float], list[float]]:
    """Return a line that has a gap where points are missing, as Grafana draws it."""
    steps = [after - before for before, after in pairwise(xs)]
    usual = min(steps, default=0.0)
    broken_xs, broken_ys = list(xs[:1]), list(ys[:1])
    for step, at, value in zip(steps, xs[1:], ys[1:], strict=True):
        if step > 1.5 * usual:
            broken_xs.append(at)
            broken_ys.append(math.nan)
        broken_xs.append(at)
        broken_ys.append(value)
    return broken_xs, broken_ys


def _legend(axes: Axes, names: Sequence[str], colours: Sequence[str]) -> None:
    figure = axes.figure
    assert isinstance(figure, Figure)
    place = axes.get_position()
    wide, high = place.width * figure.get_figwidth(), place.height * figure.get_figheight()
    short = [textwrap.shorten(name, 30, placeholder="…") for name in names]
    columns = max(1, int((wide + 0.5) / (max(map(len, short)) * 0.056 + 0.3)))
    kept = short[: LINES * columns]
    if len(names) > len(kept):
        kept[-1] = f"and {len(names) - len(kept) + 1} more"
    axes.legend(
        [Rectangle((0, 0), 1, 1, color=colour) for colour in colours[: len(kept)]], kept,
        loc="upper left", bbox_to_anchor=(-0.5 / wide, -0.2 / high), ncols=columns, fontsize=6,
        frameon=False, handlelength=0.9, handleheight=0.4, columnspacing=0.9, borderaxespad=0,
        labelspacing=0.25, labelcolor=INK,
    )  # fmt: skip


def _stack(axes: Axes, drawn: Sequence[tuple[list[float], list[float], str]]) -> None:
    times = sorted({at for xs, _, _ in drawn for at in xs})
    heights = []
    for xs, ys, _ in drawn:
        values = dict(zip(xs, ys, strict=True))
        found = [values.get(at, 0.0) for at in times]
        heights.append([0.0 if math.isnan(value) else value for value in found])
    axes.stackplot(times, heights, colors=[colour for _, _, colour in drawn], alpha=0.75)


def _name(legend: str, labels: Mapping[str, str]) -> str:
    if legend == "__auto":
        return ", ".join(f"{label}={value}" for label, value in labels.items())
    for label in set(labels) | {"__none__"}:
        legend = legend.replace("{{" + label + "}}", labels.get(label, ""))
    return legend


def _times(axes: Axes) -> None:
    axes.margins(x=0)
    start, end = axes.get_xlim()
    step = next((step for step in STEPS if (end - start) / step <= MARKS), end - start)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(lambda at, _: datetime.fromtimestamp(at, UTC).strftime("%H:%M"))
