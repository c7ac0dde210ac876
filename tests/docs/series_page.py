"""Writes docs/reference/series.md from the metrics that a process exports."""

from collections.abc import Iterator

from gateway.server.telemetry.metrics import Metrics
from outbox.clock import SystemClock
from tests.dashboards.exports import BUILD

PARTS = {
    "Outbox": ("outbox_",),
    "One webhook": ("webhook_endpoint_", "webhook_client_certificate_"),
    "Backlog": ("webhook_backlog_", "owner_backlog_"),
    "Webhooks": ("webhook_",),
    "HTTP and accounts": ("http_", "graphql_", "auth_", "mail_", "password_"),
    "Retention and backup": ("retention_", "backup_"),
    "Database and process": ("",),
}
"""The prefixes of the names in each part; the first part that fits has the metric."""


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    found = list(_families())
    for part, prefixes in PARTS.items():
        rows = [row for name, row in found if name.startswith(prefixes)]
        found = [one for one in found if not one[0].startswith(prefixes)]
        yield f"## {part}\n\n| name | type | labels | help |\n| --- | --- | --- | --- |"
        yield "\n".join(rows) + "\n"


def _families() -> Iterator[tuple[str, str]]:
    """Yield the name and the row of each metric, without those of the client library."""
    registry = Metrics(clock=SystemClock(), webhook_series=1, build=BUILD).registry
    for collector in vars(registry)["_collector_to_names"]:
        if type(collector).__module__.startswith("prometheus_client.") and not hasattr(
            collector, "_labelnames"
        ):
            continue
        for family in collector.collect():
            labels = vars(collector).get("_labelnames") or vars(family).get("_labelnames") or ()
            name = family.name + ("_total" if family.type == "counter" else "")
            told = f"| `{name}` | {family.type} | {', '.join(labels) or '–'} |"
            yield name, f"{told} {family.documentation} |"
