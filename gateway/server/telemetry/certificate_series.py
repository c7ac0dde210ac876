"""Metrics of client certificates that end soon; only the leader has any.

At most 20 (outbox.queue.log.gauges), so a healthy installation has no series.
"""

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from outbox.durations import SECOND
from outbox.queue.log.gauges import Ending


class CertificateSeries(Collector):
    """A collector of the latest reading of client certificates."""

    def __init__(self) -> None:
        self._ending: Sequence[Ending] = ()

    def refresh(self, ending: Sequence[Ending]) -> None:
        """Set a new reading, which is empty when another node reads."""
        self._ending = ending

    def collect(self) -> Iterator[Metric]:
        """Yield the metric; it runs in the rendering thread, on a reading that nobody changes."""
        until = GaugeMetricFamily(
            "webhook_client_certificate_end_timestamp_seconds",
            "When the client certificate of an active webhook ends; only of those that end within "
            "30 days or have ended.",
            labels=("webhook", "owner"),
        )
        for one in self._ending:
            until.add_metric((one.webhook_id, one.owner_id), one.until / SECOND)
        yield until
