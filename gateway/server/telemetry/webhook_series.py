"""Metrics per webhook, with a limit: some webhooks have their own series, the rest share `other`.

Counts never move between series: a webhook that gets its own series later starts at 0, and its
earlier counts stay in `other`. A webhook gets a series with its first waiting delivery, and after a
restart from the database. It can lose the series after an hour without an attempt; with waiting
deliveries, only when another webhook needs the place.

It is one module because all its series name single webhooks: also those that are behind, and those
whose client certificate ends.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from outbox.durations import SECOND
from outbox.queue.log.backlogs import Backlogs
from outbox.queue.log.certificate_ends import Ending
from outbox.queue.log.gauges import WebhookHealth
from outbox.queue.log.waiting_counts import Waiting
from outbox.queue.state.claimed_deliveries import FAILING_WINDOW, FIRST_WINDOW
from outbox.states import End, OutcomeName

OTHER = "other"
IDLE_SECONDS = 3600.0
BOUNDS = (0.05, 0.25, 1.0, 5.0, 15.0)
EDGES = (*map(str, BOUNDS), "+Inf")
NEWCOMERS = 10_000


@dataclass(slots=True)
class Series:
    """The counts of one webhook, or of all webhooks without their own series."""

    host: str
    used: float
    attempts: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    buckets: list[int] = field(default_factory=lambda: [0] * len(EDGES))
    seconds: float = 0.0
    last_success: float | None = None
    window: int | None = None


class WebhookSeries(Collector):
    """A collector of attempts and results by webhook; `most` webhooks have their own series."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._series: dict[str, Series] = {}
        self._other = Series("", 0.0)
        self._newcomers: Counter[str] = Counter()
        self._waiting: Mapping[str, Waiting] | None = {}
        self._standing: Mapping[str, WebhookHealth] = {}

    def attempt(
        self,
        webhook_id: str,
        host: str,
        outcome: OutcomeName,
        seconds: float,
        *,
        now: float,
        wall: float,
    ) -> None:
        """Count an attempt; `now` is in monotonic seconds, `wall` in seconds UTC."""
        series = self._series.get(webhook_id) or self._new(webhook_id, now)
        if series is self._other:
            # A failure weighs more than a success, because it needs more attention.
            self._newcomers[webhook_id] += 1 if outcome == "success" else 10
            if len(self._newcomers) > NEWCOMERS:
                self._newcomers = Counter(dict(self._newcomers.most_common(NEWCOMERS // 2)))
        else:
            series.host, series.used = host, now
        series.attempts[outcome] += 1
        series.buckets[bisect_left(BOUNDS, seconds)] += 1
        series.seconds += seconds
        if outcome == "success":
            series.last_success = wall

    def finished(self, webhook_id: str, end: End) -> None:
        """Count a finished delivery."""
        self._series.get(webhook_id, self._other).ends[end] += 1

    def window(self, webhook_id: str, width: int) -> None:
        """Set the window of a webhook."""
        series = self._series.get(webhook_id)
        if series is not None:
            series.window = width

    def forget_windows(self) -> None:
        """Forget the windows of all webhooks, because this process sends nothing more."""
        for series in self._series.values():
            series.window = None

    @property
    def most(self) -> int:
        """The maximum number of webhooks with their own series."""
        return self._most

    def choose(self, waiting: Mapping[str, Waiting], now: float) -> list[str]:
        """Return the webhooks that get their own series.

        Idle places go to the busiest other webhooks, then to those with the most waiting
        deliveries.
        """
        idle = [w for w, series in self._series.items() if now - series.used >= IDLE_SECONDS]
        for webhook_id in idle:
            if webhook_id not in waiting:
                del self._series[webhook_id]
        newcomers = [w for w, _ in self._newcomers.most_common(self._most)]
        over = len(self._series) + len(newcomers) - self._most
        for webhook_id in [w for w in idle if w in waiting][: max(over, 0)]:
            del self._series[webhook_id]
        self.admit(newcomers, now)
        rest = (w for w in waiting if w not in self._series)
        free = self._most - len(self._series)
        self.admit(nlargest(free, rest, key=lambda w: waiting[w].pending), now)
        self._newcomers.clear()
        return list(self._series)

    def admit(self, webhooks: Iterable[str], now: float) -> None:
        """Give `webhooks` their own series, in order, while there are free places."""
        for webhook_id in webhooks:
            if len(self._series) >= self._most:
                break
            self._series.setdefault(webhook_id, Series("", now))

    def refresh(
        self, waiting: Mapping[str, Waiting] | None, standing: Mapping[str, WebhookHealth]
    ) -> None:
        """Set a new reading of the database.

        `waiting` is None when another node reads; then values from the database are not shown.
        """
        self._waiting, self._standing = waiting, standing

    def _new(self, webhook_id: str, now: float) -> Series:
        if len(self._series) >= self._most:
            return self._other
        series = self._series[webhook_id] = Series("", now)
        return series

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; it runs in the rendering thread, on a copy of the table."""
        own = list(self._series.items())
        rows = [*own, (OTHER, self._other)]
        attempts = CounterMetricFamily(
            "webhook_endpoint_attempts",
            "Requests to a webhook, by outcome.",
            labels=("webhook", "outcome"),
        )
        ends = CounterMetricFamily(
            "webhook_endpoint_deliveries",
            "Finished deliveries of a webhook, by result.",
            labels=("webhook", "result"),
        )
        duration = HistogramMetricFamily(
            "webhook_endpoint_duration_seconds",
            "Duration of requests to a webhook.",
            labels=("webhook",),
        )
        for webhook_id, series in rows:
            for outcome, count in list(series.attempts.items()):
                attempts.add_metric((webhook_id, outcome), count)
            for end, count in list(series.ends.items()):
                ends.add_metric((webhook_id, end), count)
            total, buckets = 0, []
            for edge, count in zip(EDGES, list(series.buckets), strict=True):
                total += count
                buckets.append((edge, total))
            duration.add_metric((webhook_id,), buckets, series.seconds)
        yield attempts
        yield ends
        yield duration
        yield from self._standings(own)

    def _standings(self, own: list[tuple[str, Series]]) -> Iterator[Metric]:
        waiting, standing = self._waiting, self._standing
        label = ("webhook",)
        pending = GaugeMetricFamily(
            "webhook_endpoint_pending", "Waiting deliveries of a webhook.", labels=label
        )
        oldest = GaugeMetricFamily(
            "webhook_endpoint_oldest_pending_age_seconds",
            "Seconds since a webhook's oldest waiting delivery was due.",
            labels=label,
        )
        success = GaugeMetricFamily(
            "webhook_endpoint_last_success_timestamp_seconds",
            "Time of a webhook's last 2xx response.",
            labels=label,
        )
        up = GaugeMetricFamily(
            "webhook_endpoint_up",
            "0 from a failed attempt to the next success and while disabled, else 1.",
            labels=label,
        )
        window = GaugeMetricFamily(
            "webhook_endpoint_window",
            "Maximum number of concurrent requests to a webhook, since its last attempt.",
            labels=label,
        )
        info = GaugeMetricFamily(
            "webhook_endpoint_info",
            "The host of a webhook; joins it with its id.",
            labels=("webhook", "host"),
        )
        for webhook_id, series in own:
            state = standing.get(webhook_id)
            if waiting is not None:
                waits = waiting.get(webhook_id)
                pending.add_metric((webhook_id,), waits.pending if waits else 0)
                oldest.add_metric((webhook_id,), waits.oldest_age if waits else 0)
                up.add_metric((webhook_id,), 0 if state is not None and not state.up else 1)
            last = series.last_success
            if last is None and state is not None and state.last_success_at is not None:
                last = state.last_success_at / SECOND
            if last is not None:
                success.add_metric((webhook_id,), last)
            width = series.window
            if width is None and waiting is not None:
                width = FAILING_WINDOW if state is not None and state.failing else FIRST_WINDOW
            if width is not None:
                window.add_metric((webhook_id,), width)
            host = series.host or (state.host if state is not None else "")
            if host:
                info.add_metric((webhook_id, host), 1)
        if waiting is not None:
            mine = {webhook_id for webhook_id, _ in own}
            rest = [waits for webhook_id, waits in waiting.items() if webhook_id not in mine]
            pending.add_metric((OTHER,), sum(waits.pending for waits in rest))
            oldest.add_metric((OTHER,), max((waits.oldest_age for waits in rest), default=0))
        yield from (pending, oldest, success, up, window, info)


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
            "First attempts due at webhooks with which the installation is late: of the owner who "
            "has most (largest), and of all others (rest).",
            labels=("part",),
        )
        count = GaugeMetricFamily(
            "outbox_backlog_webhooks",
            "Webhooks without an open circuit at which a first attempt is a minute late, without "
            "the wait for the owner's rate or a Retry-After.",
        )
        owners = GaugeMetricFamily(
            "outbox_backlog_owners",
            "Owners of webhooks at which a first attempt is a minute late (1m), and ten (10m).",
            labels=("late",),
        )
        of_webhook = GaugeMetricFamily(
            "webhook_backlog_deliveries",
            "First attempts due at a webhook that is behind.",
            labels=("webhook", "owner"),
        )
        age_of_webhook = GaugeMetricFamily(
            "webhook_backlog_age_seconds",
            "Time since the oldest of them was due.",
            labels=("webhook", "owner"),
        )
        of_owner = GaugeMetricFamily(
            "owner_backlog_deliveries",
            "First attempts due at the webhooks of an owner.",
            labels=("owner",),
        )
        age_of_owner = GaugeMetricFamily(
            "owner_backlog_age_seconds", "Time since the oldest of them was due.", labels=("owner",)
        )
        if reading is not None:
            deliveries.add_metric(("largest",), reading.largest)
            deliveries.add_metric(("rest",), reading.rest)
            count.add_metric((), reading.late)
            owners.add_metric(("1m",), reading.late_owners)
            owners.add_metric(("10m",), reading.long_late_owners)
            for webhook_id, backlog in reading.webhooks.items():
                labels = (webhook_id, backlog.owner_id)
                of_webhook.add_metric(labels, backlog.deliveries)
                age_of_webhook.add_metric(labels, backlog.age)
            for owner_id, backlog in reading.owners.items():
                of_owner.add_metric((owner_id,), backlog.deliveries)
                age_of_owner.add_metric((owner_id,), backlog.age)
        yield from (deliveries, count, owners, of_webhook, age_of_webhook, of_owner, age_of_owner)
