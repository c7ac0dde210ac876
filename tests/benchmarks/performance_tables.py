"""The tables of docs/performance.md, made from the figures of the benchmarks.

A table stands between a comment with the name of its benchmark and the comment `end`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

BLOCK = "<!-- measured: {name} -->\n{text}<!-- end -->"
FIND = re.compile(r"<!-- measured: (\w+) -->\n.*?<!-- end -->", re.S)
NOTHING = "Not measured yet: `make performance`.\n"

Figures = Mapping[str, Any]


def filled(page: str, measured: Mapping[str, Any]) -> str:
    """Return the page with a new table in the place of each old one."""

    def block(match: re.Match[str]) -> str:
        name = match[1]
        text = NOTHING
        if name in measured:
            found = measured[name]
            text = SECTIONS[name](found["figures"]) + "\n" + _told(found)
        return BLOCK.format(name=name, text=text)

    return FIND.sub(block, page)


def _told(found: Mapping[str, Any]) -> str:
    """Return the sentences below a table: what was missed, where and when."""
    at, figures = found["conditions"], found["figures"]
    databases = [text for key, text in figures.items() if key.endswith("database")]
    lines = [f"Missed here: {'; '.join(found['missed'])}.\n"] if found["missed"] else []
    lines.append(
        f"{at['date']}, {at['cores']} cores of {at['processor']}, {at['memory_gib']} GiB, "
        f"{at['file_system']} (a flush of 4 KiB takes {at['flush_ms']} ms), {at['system']}, Python "
        f"{at['python']}. {'; '.join(databases or ['SQLite, WAL, synchronous=FULL'])}."
    )
    if not at["quiet"]:
        lines.append(
            f"**The machine was busy with other work** ({at['busy']} cores in use, niceness "
            f"{at['nice']}): trust ratios and CPU times more than rates and latencies."
        )
    return "\n".join(lines) + "\n"


def _end_to_end(figures: Figures) -> str:
    rows = []
    for side, name in (("before", f"commit {figures['before']}"), ("now", "this tree")):
        server = figures[f"{side}_server_cpu_us"]
        cpu = f"{figures[f'{side}_cpu_us']:,} µs"
        rows.append((
            name, f"{figures[f'{side}_events_per_s']:,}",
            cpu + (f" (PostgreSQL {server:,})" if server else ""),
            f"{figures[f'{side}_write_p99_ms']:.0f} ms",
        ))  # fmt: skip
    rows.append((
        "ratio", f"{figures['times_before']:.2f} (goal {figures['times_before_bar']})",
        f"{figures['cpu_of_before']:.2f} (goal {figures['cpu_of_before_bar']})", "",
    ))  # fmt: skip
    text = _table(("", "events a second", "CPU of an event", "write, p99"), rows)
    text += (
        f"\n{figures['events']:,} events, {figures['connections']} connections, "
        f"{_runs(figures)} of each"
    )
    if figures["settings"]:
        text += ", ours with two processes"
    if "idle_median_ms" in figures:
        text += (
            f". Idle, from the start of a write to its request: median {figures['idle_median_ms']} "
            f"ms, p99 {figures['idle_p99_ms']} ms"
        )
    return text + ".\n"


def _write_path(figures: Figures) -> str:
    names = (
        ("bare", "bare handler, stores nothing"),
        ("statements", "bare handler, each statement awaited through aiosqlite"),
        ("delivery_off", "`--role api`"),
        ("delivery_on", "with delivery"),
    )
    rows = [
        (name, f"{figures[f'{key}_per_s']:,}",
         f"{figures[f'{key}_per_s'] / figures['bare_per_s']:.2f}")
        for key, name in names
    ]  # fmt: skip
    return _table(("a write", "a second", "of bare"), rows)


def _read_path(figures: Figures) -> str:
    rows = [
        (name, f"{figures[f'{key}_bare_per_s']:,}", f"{figures[f'{key}_per_s']:,}",
         f"{figures[f'{key}_of_bare']:.2f}")
        for key, name in (("one", "`GET` by id"), ("page", "a first page of twenty contacts"))
    ]  # fmt: skip
    return _table(("a read", "bare handler, a second", "a second", "of bare"), rows)


def _pages(figures: Figures) -> str:
    end = "_further_bytes"
    names = [key.removesuffix(end) for key in figures if key.endswith(end)]
    rows = [
        (
            f"`{name}`",
            *(f"{figures[f'{name}{kind}_per_s']:,}" for kind in ("", "_further")),
            *(f"{figures[f'{name}{kind}_of_bare']:.2f}" for kind in ("", "_further")),
        )
        for name in names
    ]
    heads = ("a page of twenty", "first, a second", "further, a second", "first, of bare")
    return _table((*heads, "further, of bare"), rows)


def _send_path(figures: Figures) -> str:
    rows = [
        (name, f"{figures[f'{key}_per_s']:,}", f"{figures[f'{key}_cpu_us']:,.0f} µs",
         f"{figures[f'{key}_per_s'] / figures['bare_per_s']:.2f}")
        for key, name in (("bare", "bare client: signs and posts"), ("drain", "the drain"))
    ]  # fmt: skip
    return _table(("a delivery", "a second", "CPU", "of bare"), rows)


def _growth(figures: Figures) -> str:
    text = ""
    for engine, axis, values in growth_points(figures):
        titles = (
            AXES[axis], "events a second", "deliveries a second", "p50", "p99", "CPU of an event",
            "cores: node, all",
        )  # fmt: skip
        rows = []
        for value in values:
            point = figures[f"{engine}_{axis}_{value}"]
            server = f" + {point['server_cpu_us']:,}" if point["server_cpu_us"] else ""
            rows.append((
                f"{value:,}", f"{point['events_per_s']:,.0f}", f"{point['deliveries_per_s']:,}",
                f"{point['p50_ms']:.0f} ms", f"{point['p99_ms']:.0f} ms",
                f"{point['node_cpu_us']:,}{server} µs",
                f"{point['node_cores']}, {point['machine_cores']}",
            ))  # fmt: skip
        text += f"{_table(titles, rows)}\n"
    return text + (
        f"{figures['deliveries']:,} deliveries a run, {figures['connections']} connections, "
        f"{_runs(figures)} of each point.\n"
    )


AXES = {
    "webhooks_per_event": "webhooks per event",
    "webhooks": "webhooks, one per owner",
    "kept_rows": "kept rows",
}
ENGINES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def growth_points(figures: Figures) -> list[tuple[str, str, list[int]]]:
    """Return engine, axis and values of each curve."""
    found: dict[tuple[str, str], list[int]] = {}
    for key in figures:
        match = re.fullmatch(rf"({'|'.join(ENGINES)})_({'|'.join(AXES)})_(\d+)", key)
        if match:
            found.setdefault((match[1], match[2]), []).append(int(match[3]))
    return [(engine, axis, values) for (engine, axis), values in found.items()]


def _runs(figures: Figures) -> str:
    count = figures["runs"]
    return "one run" if count == 1 else f"medians of {count} runs in turn"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _units(figures: Figures) -> str:
    rows = [
        (name.removesuffix("_ms").replace("_", " "), f"{value:.1f} ms")
        for name, value in figures.items() if name.endswith("_ms")
    ]  # fmt: skip
    return _table(("kind of unit, at its limit", "longest"), rows)


SECTIONS: Mapping[str, Callable[[Figures], str]] = {
    "end_to_end": _end_to_end,
    "end_to_end_postgres": _end_to_end,
    "write_path": _write_path,
    "read_path": _read_path,
    "pages": _pages,
    "send_path": _send_path,
    "growth": _growth,
    "growth_postgres": _growth,
    "units": _units,
}
"""Every benchmark of the page, in its order."""
