"""Metrics of webhooks and owners that are behind; only the leader has any, and only those behind.

At most 20 webhooks and 20 owners (outbox.queue.log.backlogs), so a healthy installation has no
series.
"""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from outbox.queue.log.backlogs import Backlogs

WEBHOOK = ("webhook", "owner")
OWNER = ("owner",)


class BacklogSeries(Collector):
    """A collector of the latest reading of backlogs."""

    def __init__(self) -> None:
        self._backlogs: Backlogs | None = None

    def refresh(self, backlogs: Backlogs | None) -> None:
        """Set a new reading; None when another node reads."""
        self._backlogs = backlogs

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; it runs in the rendering thread, on a reading that nobody changes."""
        reading = self._backlogs
        deliveries = GaugeMetricFamily(
            "outbox_backlog_deliveries",
            "First attempts due at webhooks that are behind: at the largest, which has most, "
            "and at the rest.",
            labels=("part",),
        )
        count = GaugeMetricFamily(
            "outbox_backlog_webhooks",
            "Webhooks without an open circuit whose oldest first attempt is a minute late.",
        )
        of_webhook = GaugeMetricFamily(
            "webhook_backlog_deliveries",
            "First attempts due at a webhook that is behind.",
            labels=WEBHOOK,
        )
        age_of_webhook = GaugeMetricFamily(
            "webhook_backlog_age_seconds", "Time since the oldest of them was due.", labels=WEBHOOK
        )
        of_owner = GaugeMetricFamily(
            "owner_backlog_deliveries",
            "First attempts due at the webhooks of an owner.",
            labels=OWNER,
        )
        age_of_owner = GaugeMetricFamily(
            "owner_backlog_age_seconds", "Time since the oldest of them was due.", labels=OWNER
        )
        if reading is not None:
            deliveries.add_metric(("largest",), reading.largest)
            deliveries.add_metric(("rest",), reading.rest)
            count.add_metric((), reading.behind)
            for webhook_id, backlog in reading.webhooks.items():
                labels = (webhook_id, backlog.owner_id)
                of_webhook.add_metric(labels, backlog.deliveries)
                age_of_webhook.add_metric(labels, backlog.age)
            for owner_id, backlog in reading.owners.items():
                of_owner.add_metric((owner_id,), backlog.deliveries)
                age_of_owner.add_metric((owner_id,), backlog.age)
        yield from (deliveries, count, of_webhook, age_of_webhook, of_owner, age_of_owner)
