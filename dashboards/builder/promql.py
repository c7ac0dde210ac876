"""Expressions of PromQL for panels: selectors, rates, quantiles, gauges of the whole database.

Labels are written as in PromQL: `attempt="first",le="5.0"`.
"""

from __future__ import annotations

NODES = 'job=~"$job",instance=~"$instance"'
INSTALLATION = 'job=~"$job"'


def of(metric: str, labels: str = "") -> str:
    """Return the series of the chosen nodes."""
    return f"{metric}{{{_joined(NODES, labels)}}}"


def rate(metric: str, labels: str = "", by: str = "") -> str:
    """Return increments a second, summed `by` labels."""
    return f"{_over('sum', by)} (rate({of(metric, labels)}[$__rate_interval]))"


def increase(metric: str, labels: str = "", by: str = "") -> str:
    """Return increments within the time range of the dashboard, summed `by` labels."""
    return f"{_over('sum', by)} (increase({of(metric, labels)}[$__range]))"


def ratio(part: str, whole: str) -> str:
    """Return `part` by `whole`; nothing, instead of a division by zero, while `whole` is 0."""
    return f"{part}\n/ ({whole} > 0)"


def quantile(q: float, histogram: str, labels: str = "", by: str = "") -> str:
    """Return a quantile of a histogram."""
    buckets = rate(f"{histogram}_bucket", labels, f"le, {by}" if by else "le")
    return f"histogram_quantile({q}, {buckets})"


def whole(metric: str, labels: str = "", by: str = "", each: str = "") -> str:
    """Return a gauge that describes the database, which every node or the leader alone exports.

    It is the same figure wherever it is read: the largest within a job, the sum of several jobs.
    `each` are the labels that tell its series apart, unless they are those of `by`.
    """
    within = f"{metric}{{{_joined(INSTALLATION, labels)}}}"
    return f"{_over('sum', by)} (max by ({_joined('job', each or by, ', ')}) ({within}))"


def highest(metric: str, labels: str = "", by: str = "") -> str:
    """Return the largest value of the installation, for ages and times."""
    return f"{_over('max', by)} ({metric}{{{_joined(INSTALLATION, labels)}}})"


def _over(operator: str, by: str) -> str:
    return f"{operator} by ({by})" if by else operator


def _joined(first: str, second: str, between: str = ",") -> str:
    return f"{first}{between}{second}" if first and second else first or second
