"""Our counters and histograms have the same text as those of the library."""

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from gateway.server.telemetry.meters import Counters, Timings

BOUNDS = (0.005, 0.5, 1, 2.5, 259200)


def test_a_counter_and_histograms_are_the_librarys() -> None:
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # theirs
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    # One without labels has its series at once.
    Timings("loop_seconds", "Delay.", BOUNDS, (), ours)[()]
    Histogram("loop_seconds", "Delay.", buckets=BOUNDS, registry=theirs)
    timings = Timings("op_seconds", "Duration.", BOUNDS, ("op",), ours)
    histogram = Histogram("op_seconds", "Duration.", ("op",), buckets=BOUNDS, registry=theirs)
    counters = Counters("ops_total", "Operations.", ("op", "result"), ours)
    counter = Counter("ops_total", "Operations.", ("op", "result"), registry=theirs)
    for op in ("read", 'a "b"\n'):
        # The bounds themselves belong to their buckets.
        for number, seconds in enumerate((0, *BOUNDS, 0.0051, 2.4, 1e6)):
            timings[(op,)](seconds)
            histogram.labels(op).observe(seconds)
            counters[op, "ok"].inc(number)
            counter.labels(op, "ok").inc(number)
    assert generate_latest(ours) == generate_latest(theirs)
