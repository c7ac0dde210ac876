"""What may be queried: the metrics of this program, of the rules and of Prometheus itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from gateway.server.telemetry.metrics import Metrics
from outbox.clock import SystemClock
from tests.dashboards import documents

BUILD = dict.fromkeys(("version", "revision", "python", "sqlite", "backend", "console"), "")
OWN = {
    "up": {"job", "instance"},
    "ALERTS": {
        "alertname", "alertstate", "severity", "application", "instance", "webhook", "owner",
    },
    "scrape_duration_seconds": {"job", "instance"},
    "scrape_samples_scraped": {"job", "instance"},
}  # fmt: skip
"""Series that Prometheus makes by itself, and their labels."""
LIBRARY = {"generation"}
"""The labels of the families of the client library, which does not declare them."""
ENDINGS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


@dataclass(frozen=True)
class Series:
    """An exported series: its family, whether it only grows, and its labels."""

    family: str
    counts: bool
    labels: frozenset[str]


@cache
def exported() -> dict[str, Series]:
    """Return each series that a process exports, by name."""
    registry = Metrics(clock=SystemClock(), webhook_series=1, build=BUILD).registry
    found = {}
    for collector in vars(registry)["_collector_to_names"]:
        for family in collector.collect():
            labels = vars(collector).get("_labelnames") or vars(family).get("_labelnames")
            if labels is None:
                labels = LIBRARY
            for ending in ENDINGS[family.type]:
                own = {"le"} if ending == "_bucket" else set()
                found[family.name + ending] = Series(
                    family.name, family.type != "gauge", frozenset(labels) | own
                )
    return found


@cache
def recorded() -> set[str]:
    """Return the names of the recorded series."""
    return {rule["record"] for rule in documents.rules("recording.yml")}
