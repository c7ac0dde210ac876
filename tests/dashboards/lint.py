"""The rules for dashboards, after those of grafana/dashboard-linter and cloudflare/pint.

Each function returns the faults it finds, one line each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import promql_parser

from tests.dashboards.documents import (
    Expression,
    marks,
    names,
    nodes,
    panels,
    parsed,
    queries,
    selectors,
)  # fmt: skip
from tests.dashboards.exports import OWN, exported, recorded

UNITS = {"s", "short", "none", "bytes", "percentunit", "reqps", "ops"}
"""Units of Grafana that our panels use."""
NODE = "instance:carteiro_node:info"
OURS = ("outbox_", "webhook_", "owner_backlog_")
"""What the names begin with that no other program has."""
INSTALLATION_WIDE = {
    "outbox_deliveries", "outbox_oldest_ready_age_seconds", "webhook_endpoints",
    "outbox_scheduler_last_tick_timestamp_seconds", "webhook_endpoint_pending",
    "webhook_endpoint_oldest_pending_age_seconds", "webhook_endpoint_up", "webhook_endpoint_info",
    "webhook_endpoint_last_success_timestamp_seconds", "secret_age_seconds", "up", "ALERTS",
    "retention_last_success_timestamp_seconds", "outbox_backlog_deliveries",
    "outbox_backlog_webhooks", "outbox_backlog_owners", "webhook_backlog_deliveries",
    "webhook_backlog_age_seconds", "owner_backlog_deliveries", "owner_backlog_age_seconds",
    "webhook_client_certificate_end_timestamp_seconds", "app_owner_moves",
    "app_owner_closed_seconds", "app_owner_move_changes",
}  # fmt: skip
"""Figures of the whole installation, whichever node exports them: a choice of nodes cuts none."""
LOOK_BACK = {"changes", "max_over_time", "predict_linear"}
"""Functions over a time that their panel names, whatever its resolution."""


def of_panels(dashboard: dict[str, Any]) -> Iterator[str]:
    """Check that each panel says what it shows, in which unit; the builder sees to the rest."""
    shown = panels(dashboard)
    for title, count in Counter(panel["title"] for panel in shown).items():
        if count > 1:
            yield f"{count} panels: {title}"
    for panel in shown:
        title = panel["title"]
        if not 0 < len(title) <= 45:
            yield f"{panel['id']}: title {title!r}"
        if len(panel["description"].split()) < 5 or not panel["description"].endswith("."):
            yield f"{title}: no description"
        if panel["fieldConfig"]["defaults"].get("unit") not in UNITS:
            yield f"{title}: unit {panel['fieldConfig']['defaults'].get('unit')}"
        if not panel["targets"]:
            yield f"{title}: no query"


def of_query(query: Expression) -> Iterator[str]:
    """Check an expression of a dashboard."""
    try:
        parsed(query.text)
    except (ValueError, KeyError) as error:
        yield f"{query.place}: {error}"
        return
    for check in (of_series, of_counters, of_windows, of_choices):
        yield from check(query)


def of_series(query: Expression) -> Iterator[str]:
    """Check that an expression reads series that exist, by labels that they have."""
    tree = parsed(query.text)
    known = exported()
    grouped = {
        label for part in nodes(tree) if isinstance(part, promql_parser.AggregateExpr)
        and part.modifier is not None for label in part.modifier.labels
    }  # fmt: skip
    possible = {"job", "instance"}
    for selector in selectors(query.text):
        name = selector.name or ""
        if name in recorded():
            # Its labels are those of its rule.
            possible |= grouped
            continue
        if name not in known and name not in OWN:
            yield f"{query.place}: {name} is not exported"
            continue
        have = {"job", "instance"} | (known[name].labels if name in known else OWN[name])
        possible |= have
        for matcher in selector.matchers.matchers:
            if matcher.name not in have:
                yield f"{query.place}: {name} has no label {matcher.name}"
    for label in sorted(grouped - possible):
        yield f"{query.place}: grouped by {label}, which nothing has"


def of_counters(query: Expression) -> Iterator[str]:
    """Check that counters are read as rates or increases, and gauges never."""
    tree = parsed(query.text)
    grown: set[str] = set()
    for call in nodes(tree):
        if isinstance(call, promql_parser.Call) and call.func.name in {"rate", "increase"}:
            inner = [part for arg in call.args for part in nodes(arg)]
            read = [p.name for p in inner if isinstance(p, promql_parser.VectorSelector) and p.name]
            grown |= set(read)
            for name in read:
                if name in exported() and not exported()[name].counts:
                    yield f"{query.place}: {call.func.name} of the gauge {name}"
    for name in names(query.text) - grown:
        if name in exported() and exported()[name].counts:
            yield f"{query.place}: the counter {name} without rate"


def of_windows(query: Expression) -> Iterator[str]:
    """Check that rates follow the resolution of the panel, and increases its time range."""
    # The parser sees examples instead of Grafana's variables.
    windows = {"rate": "$__rate_interval", "irate": "$__rate_interval", "increase": "$__range"}
    for call in nodes(parsed(query.text)):
        if isinstance(call, promql_parser.Call) and call.func.name not in LOOK_BACK:
            ranged = [arg for arg in call.args if isinstance(arg, promql_parser.MatrixSelector)]
            if ranged and call.func.name not in windows:
                yield f"{query.place}: {call.func.name} over a time"
    for function, window in windows.items():
        for used in query.text.split(f"{function}(")[1:]:
            if used.partition("[")[2].partition("]")[0] != window:
                yield f"{query.place}: {function} without [{window}]"


def of_choices(query: Expression) -> Iterator[str]:
    """Check that the chosen installation and nodes apply to every selector."""
    for selector in selectors(query.text):
        name = selector.name or ""
        matchers = {str(matcher) for matcher in selector.matchers.matchers}
        if name == "ALERTS":
            continue
        if 'job=~"$job"' not in matchers:
            yield f'{query.place}: {name} without job=~"$job"'
        free = name in INSTALLATION_WIDE or name in recorded()
        if not free and 'instance=~"$instance"' not in matchers:
            yield f'{query.place}: {name} without instance=~"$instance"'


def of_programs(rule: Expression) -> Iterator[str]:
    """Check that a rule reads nothing of other programs, whatever the job is called."""
    joined = NODE in rule.text or "on (job, instance) outbox_" in rule.text
    for selector in selectors(rule.text):
        name = selector.name or ""
        labels = {matcher.name for matcher in selector.matchers.matchers}
        if "job" in labels:
            yield f"{rule.place}: {name} of a job by its name"
        ours = name in recorded() or name.startswith(OURS) or "surface" in labels
        if not ours and not joined:
            yield f"{rule.place}: {name} may be of another program"


def of_unused(used: Iterable[Expression]) -> Iterator[str]:
    """Check that each exported metric and each recorded series is read somewhere."""
    read = {name for query in used for name in names(query.text)}
    known = exported()
    families = {series.family for name, series in known.items() if name in read}
    for family in sorted({series.family for series in known.values()} - families):
        yield f"{family} is exported, and no panel and no rule reads it"
    for name in sorted(recorded() - read):
        yield f"{name} is recorded, and no panel and no rule reads it"


def faults(dashboard: dict[str, Any]) -> list[str]:
    """Return all faults of one dashboard."""
    asked = (*queries(dashboard), *marks(dashboard))
    return [*of_panels(dashboard), *(fault for query in asked for fault in of_query(query))]
