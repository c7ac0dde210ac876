"""The size of each benchmark: in full, or just enough to see that it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """`seconds` and `warm_up` apply to one run of the load; `runs` alternate with baselines."""

    runs: int
    connections: int
    warm_up: float
    seconds: float
    events: int
    """Committed events that the send path drains in one run."""
    singles: int
    """Single writes of the idle benchmark."""
    webhooks: int
    """Webhooks of the hanging benchmark, and the seconds of its warm-up and load."""
    hanging_warm_up: float
    hanging_seconds: float
    parked: int
    """Rows that wait at webhooks which do not take them."""
    records: int
    """Records of the owner with long lists."""
    steady_seconds: float
    """Seconds of each run whose costs are measured."""
    grown_deliveries: int
    """Deliveries of one run of the growth benchmark, and the values of its three axes."""
    grown_per_event: tuple[int, ...]
    grown_webhooks: tuple[int, ...]
    grown_kept: tuple[int, ...]
    paces: tuple[float, ...] = (50.0, 200.0, 1000.0)
    """Events a second of the quiet day."""
    engines: tuple[str, ...] = ("sqlite", "postgres")


FULL = Size(
    runs=5, connections=64, warm_up=1.0, seconds=3.0, events=20_000, singles=300,
    webhooks=10_000, hanging_warm_up=15.0, hanging_seconds=25.0, parked=1_000_000,
    records=100_000, steady_seconds=5.0, grown_deliveries=10_000, grown_per_event=(1, 10, 50),
    grown_webhooks=(1, 1_000, 10_000), grown_kept=(0, 1_000_000, 10_000_000),
)  # fmt: skip
QUICK = Size(
    runs=1, connections=4, warm_up=0.1, seconds=0.4, events=200, singles=10,
    webhooks=100, hanging_warm_up=0.5, hanging_seconds=1.0, parked=1_000,
    records=3_000, steady_seconds=0.5, grown_deliveries=60, grown_per_event=(1, 3),
    grown_webhooks=(1, 20), grown_kept=(0, 3_000), paces=(50.0,), engines=("sqlite",),
)  # fmt: skip
