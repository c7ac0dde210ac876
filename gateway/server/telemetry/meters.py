"""Counters and histograms as plain numbers: the library's own take a lock for each of their values.

The event loop alone updates them; a scrape copies them in its thread.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString


class Scraped:
    """What the registry asks for a metric at each scrape; a dictionary cannot be its key."""

    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self.collect = collect


class Count:
    """One series of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1) -> None:
        """Add `amount`."""
        self.value += amount


class Counters(dict[tuple[str, ...], Count]):
    """A counter's series by label values; a series exists from its first use."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], registry: CollectorRegistry
    ) -> None:
        super().__init__()
        self._described = (name, text)
        self._labels = labels
        registry.register(Scraped(self._metric))

    def __missing__(self, labels: tuple[str, ...]) -> Count:
        count = self[labels] = Count()
        return count

    def _metric(self) -> Iterator[Metric]:
        """Yield the metric."""
        family = CounterMetricFamily(*self._described, labels=self._labels)
        for labels, count in list(self.items()):
            family.add_metric(labels, count.value)
        yield family


class Timing:
    """One series of a histogram with these upper `bounds` of its buckets."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """The observations in each bucket; the last bucket has no bound."""
        self.total = 0.0

    def observe(self, amount: float) -> None:
        """Count an observation."""
        self.counts[bisect_left(self._bounds, amount)] += 1
        self.total += amount


class Timings(dict[tuple[str, ...], Callable[[float], None]]):
    """The `observe` methods of a histogram's series by label values."""

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        labels: Sequence[str],
        registry: CollectorRegistry,
    ) -> None:
        super().__init__()
        self._described = (name, text)
        self._labels = labels
        self._bounds = bounds
        self._edges = [*map(floatToGoString, bounds), "+Inf"]
        self._series: dict[tuple[str, ...], Timing] = {}
        registry.register(Scraped(self._metric))

    def __missing__(self, labels: tuple[str, ...]) -> Callable[[float], None]:
        series = self._series[labels] = Timing(self._bounds)
        self[labels] = series.observe
        return series.observe

    def _metric(self) -> Iterator[Metric]:
        """Yield the metric; its buckets contain the ones below them."""
        family = HistogramMetricFamily(*self._described, labels=self._labels)
        for labels, series in list(self._series.items()):
            below, buckets = 0, []
            for edge, count in zip(self._edges, list(series.counts), strict=True):
                below += count
                buckets.append((edge, below))
            family.add_metric(labels, buckets, series.total)
        yield family
