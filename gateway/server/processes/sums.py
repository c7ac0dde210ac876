"""Adds up the metrics of several processes, in the text format of Prometheus.

Counters and histograms are added, those of ended processes and of dropped series too, so that no
sum ever falls. Of the gauges some are added; of the others the value farthest from zero stands for
all.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.utils import floatToGoString

from gateway.server.telemetry.metric_table import ADDED

SUMS = ADDED | {
    "process_open_fds",
    "process_max_fds",
    "process_resident_memory_bytes",
    "process_virtual_memory_bytes",
}
"""Gauges whose sum is the node's value, those of the client library among them."""
PROCESSES = "server_processes"
RESTARTS = "server_process_restarts_total"
STARTED = "process_start_time_seconds"
CHOSEN = "webhook_endpoint_"
"""Families whose series come and go with the webhooks that a process has chosen."""


@dataclass(slots=True)
class Family:
    """One metric: its comment lines, its type, and its values by series."""

    comments: list[str]
    kind: str = "untyped"
    samples: dict[str, float] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether its values only grow."""
        return self.kind in ("counter", "histogram")


Families = dict[str, Family]


def parse(text: str) -> Families:
    """Return the metrics of an exposition that prometheus-client has rendered."""
    families: Families = {}
    family = Family([])
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = families[line.split(" ", 3)[2]] = Family([line])
        elif line.startswith("# TYPE "):
            family.comments.append(line)
            family.kind = line.rpartition(" ")[2]
        elif line:
            series, _, value = line.rpartition(" ")
            family.samples[series] = float(value)
    return families


def add(into: Families, more: Mapping[str, Family], *, gauges: bool = True) -> None:
    """Add the metrics of a process to `into`; without `gauges` only what counts."""
    for name, family in more.items():
        if not (gauges or family.counts):
            continue
        sums = into.setdefault(name, Family(family.comments, family.kind)).samples
        plus = family.counts or name in SUMS
        for series, value in family.samples.items():
            if series not in sums or math.isnan(sums[series]):
                sums[series] = value
            elif plus:
                sums[series] += value
            elif abs(value) > abs(sums[series]):
                sums[series] = value


def dropped(before: Families, now: Families) -> Families:
    """Return what a process counted `before` for the webhooks whose series it has dropped by `now`.

    Also those whose series it has begun anew since, of which some value is lower.
    """
    chosen = {n: f for n, f in before.items() if n.startswith(CHOSEN) and f.counts}
    gone: set[str] = set()
    for name, family in chosen.items():
        there = now[name].samples if name in now else {}
        gone.update(_webhook(s) for s, value in family.samples.items() if there.get(s, -1) < value)
    return {
        name: Family(
            family.comments,
            family.kind,
            {s: value for s, value in family.samples.items() if _webhook(s) in gone},
        )
        for name, family in chosen.items()
        if gone
    }


def together(living: Iterable[Families], past: Families) -> Families:
    """Return the metrics of the node: of its processes, and of what is past.

    `past` are the counts of ended processes and those that a living one has dropped. What it has of
    a webhook that no process has chosen any more is removed.
    """
    sums: Families = {}
    for families in living:
        add(sums, families)
    chosen = {
        _webhook(series)
        for name, family in sums.items()
        if name.startswith(CHOSEN) and family.counts
        for series in family.samples
    }
    for name, family in past.items():
        if name.startswith(CHOSEN):
            family.samples = {
                s: value for s, value in family.samples.items() if _webhook(s) in chosen
            }
    add(sums, past)
    return sums


def counted(
    families: Families, *, answering: int, missing: int, restarts: int, started: float
) -> Families:
    """Return `families` with what the supervisor alone knows of its processes.

    `started` is the start of the node, in seconds; a restart of one process is none of the node.
    """
    known = {
        PROCESSES: {
            f'{PROCESSES}{{state="answering"}}': float(answering),
            f'{PROCESSES}{{state="missing"}}': float(missing),
        },
        RESTARTS: {RESTARTS: float(restarts)},
        STARTED: {STARTED: started},
    }
    for name, samples in known.items():
        family = families.get(name.removesuffix("_total")) or families.get(name)
        if family is not None:
            family.samples = samples
    return families


def render(families: Mapping[str, Family]) -> str:
    """Return the exposition."""
    lines: list[str] = []
    for family in families.values():
        lines += family.comments
        lines += [f"{series} {_number(value)}" for series, value in family.samples.items()]
    return "\n".join(lines) + "\n"


def _webhook(series: str) -> str:
    """Return the webhook that a series is labelled with."""
    return series.partition('webhook="')[2].partition('"')[0]


def _number(value: float) -> str:
    """Return a number as prometheus-client writes it."""
    return str(floatToGoString(value))  # type: ignore[no-untyped-call] # theirs
