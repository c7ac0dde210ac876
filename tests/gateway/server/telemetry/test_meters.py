"""Our counters and histograms have the same text as those of the library."""

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from gateway.server.telemetry.meters import Counters, Timings

BOUNDS = (0.005, 0.01, 0.5, 1, 2.5, 259200)
OPS = st.sampled_from(["read", "write", 'a "b"\n'])
# The bounds themselves belong to their buckets.
SECONDS = st.sampled_from(BOUNDS) | st.floats(0, 1e6)


@pytest.mark.slow
@given(st.lists(st.tuples(OPS, SECONDS)))
def test_a_histogram_is_the_librarys(observed: list[tuple[str, float]]) -> None:
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # theirs
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    timings = Timings("op_seconds", "Duration.", BOUNDS, ("op",), ours)
    library = Histogram("op_seconds", "Duration.", ("op",), buckets=BOUNDS, registry=theirs)
    for op, seconds in observed:
        timings[(op,)](seconds)
        library.labels(op).observe(seconds)
    assert generate_latest(ours) == generate_latest(theirs)


@pytest.mark.slow
@given(st.lists(st.tuples(OPS, OPS, st.integers(0, 9))))
def test_a_counter_is_the_librarys(counted: list[tuple[str, str, int]]) -> None:
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # theirs
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    counters = Counters("ops_total", "Operations.", ("op", "result"), ours)
    library = Counter("ops_total", "Operations.", ("op", "result"), registry=theirs)
    for op, result, amount in counted:
        counters[op, result].inc(amount)
        library.labels(op, result).inc(amount)
    assert generate_latest(ours) == generate_latest(theirs)


def test_a_histogram_without_labels_has_its_series_at_once() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    Timings("loop_seconds", "Delay.", BOUNDS, (), ours)[()]
    Histogram("loop_seconds", "Delay.", buckets=BOUNDS, registry=theirs)
    assert generate_latest(ours) == generate_latest(theirs)
