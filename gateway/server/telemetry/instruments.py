"""Makes the metrics of a process, which metric_table declares.

gateway.server.telemetry.metrics updates them.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import get_args

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from gateway.server.telemetry.meters import Counters, Timings
from gateway.server.telemetry.metric_table import TABLE, Surface
from gateway.server.telemetry.webhook_series import WebhookSeries
from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.queue.log.backlogs import Backlogs
from outbox.queue.log.gauges import Ending


class Instruments:
    """The registry and its meters."""

    def __init__(self, *, clock: Clock, webhook_series: int, build: Mapping[str, str]) -> None:
        # Creation times would add a useless series to each counter.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # theirs
        self._clock = clock
        self.ticked = clock.monotonic()
        self.found_full = float("-inf")
        self.registry = registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self.webhooks = WebhookSeries(webhook_series)
        registry.register(self.webhooks)
        self.backlogs = BacklogSeries()
        registry.register(self.backlogs)
        self.certificates = CertificateSeries()
        registry.register(self.certificates)
        counters: dict[str, Counters] = {}
        locked: dict[str, Counter] = {}
        gauges: dict[str, Gauge] = {}
        histograms: dict[str, Timings] = {}
        for metric in TABLE:
            name, text, labels = metric.name, metric.text, metric.labels
            if metric.kind == "gauge":
                labels = tuple(build) if name == "app_build_info" else labels
                gauges[name] = Gauge(name, text, labels, registry=registry)
                continue
            zero = metric.zero if labels else ((),)
            if metric.threads:
                # With the lock of the library.
                locked[name] = Counter(name, text, labels, registry=registry)
                for values in zero:
                    locked[name].labels(*values)
            elif metric.kind == "counter":
                counters[name] = Counters(name, text, labels, registry)
                for values in zero:
                    counters[name][values]
            else:
                histograms[name] = Timings(name, text, metric.buckets, labels, registry)
                for values in zero:
                    histograms[name][values]
        self.timings = list(histograms.values())

        # The web side.
        self._http = histograms["http_server_request_duration_seconds"]
        # Not in the histogram: its buckets would multiply the series of each route.
        self._requests = counters["http_server_requests_total"]
        # Plain numbers, read at each scrape, save two locked calls per request.
        self.active: dict[Surface, int] = dict.fromkeys(get_args(Surface), 0)
        for surface in self.active:
            active = gauges["http_server_active_requests"].labels(surface)
            active.set_function(partial(self.active.__getitem__, surface))
        self._sockets = gauges["http_server_connections"]
        self._rejected = counters["http_requests_rejected_total"]
        self._operations = counters["graphql_operations_total"]
        self._auth = counters["auth_attempts_total"]
        self._mails = counters["mail_attempts_total"]
        self.password_hashed = histograms["password_hash_duration_seconds"][()]
        self.password_queue = gauges["password_hash_queue"].set
        self.loop_lag = histograms["event_loop_lag_seconds"][()]

        # The delivery side.
        self._events = counters["outbox_events_total"]
        self._created = counters["outbox_deliveries_created_total"]
        self._left_out = counters["outbox_deliveries_left_out_total"]
        self._deliveries = gauges["outbox_deliveries"]
        self._oldest = gauges["outbox_oldest_ready_age_seconds"]
        self._lag = histograms["outbox_attempt_lag_seconds"]
        self._claims = counters["outbox_claims_total"]
        self._claim = histograms["outbox_claim_duration_seconds"][()]
        self._rescued = counters["outbox_rescued_total"]
        self._unreadable = counters["webhook_unreadable_total"][()]
        self.fenced = counters["outbox_fenced_acks_total"][()].inc
        self.deferred = counters["outbox_deferred_settles_total"][()].inc
        self.cut = counters["outbox_slow_sends_cut_total"][()].inc
        self.restarted = counters["outbox_drain_faults_total"][()].inc
        self.clock_skew = gauges["clock_skew_seconds"].set
        # Rules compare it with times of this node and with Prometheus's clock.
        gauges["clock_time_seconds"].set_function(lambda: clock.wall() / SECOND)
        # Plain numbers, as above: each turn of the drain sets them.
        self.tick_at = self.slots_total = self.slots_busy = 0.0
        for name, value in (
            ("outbox_scheduler_last_tick_timestamp_seconds", lambda: self.tick_at),
            ("outbox_slots", lambda: self.slots_total),
            ("outbox_slots_busy", lambda: self.slots_busy),
        ):
            gauges[name].set_function(value)
        self._attempts = counters["webhook_attempts_total"]
        self._attempt = histograms["webhook_attempt_duration_seconds"]
        self._latency = histograms["webhook_delivery_latency_seconds"][()]
        self._finished = counters["webhook_deliveries_finished_total"]
        self._endpoints = gauges["webhook_endpoints"]
        self._transitions = counters["webhook_circuit_transitions_total"]
        self._connection = counters["webhook_connections_total"]
        self.truncated = counters["webhook_response_truncated_total"][()].inc
        self.redirect_refused = counters["webhook_redirects_refused_total"][()].inc
        self._jobs_made = counters["webhook_job_deliveries_total"]
        self._jobs_ended = counters["webhook_jobs_ended_total"]

        # Retention, backups and moves.
        self._purged = counters["retention_purged_total"]
        self._swept = gauges["retention_last_success_timestamp_seconds"]
        self.backed_up = gauges["backup_last_success_timestamp_seconds"]
        self._moves = gauges["app_owner_moves"]
        self._move_changes = gauges["app_owner_move_changes"]
        self._closed_age = gauges["app_owner_closed_seconds"]

        # The store and this process.
        self._transactions = histograms["db_transaction_duration_seconds"]
        self._faults = counters["db_errors_total"]
        self._pool = gauges["db_pool_connections"]
        self._spans = locked["tracing_spans_total"]
        self.file_bytes = gauges["db_file_bytes"]
        self.wal_bytes = gauges["db_wal_bytes"]
        self.free_bytes = gauges["db_free_bytes"]
        for size in (self.file_bytes, self.wal_bytes, self.free_bytes):
            # Until it is measured. PostgreSQL tells neither the size nor the rest of its disk.
            size.set(math.nan)
        self.collection_seconds = gauges["metrics_collection_duration_seconds"]
        self.collection_errors = counters["metrics_collection_errors_total"]
        self._secret_age = gauges["secret_age_seconds"]
        self._file_refused = gauges["secret_key_file_refused"]
        # Of several, their supervisor counts them (gateway.server.processes.sums).
        for state, count in (("answering", 1), ("missing", 0)):
            gauges["server_processes"].labels(state).set(count)
        gauges["app_build_info"].labels(*build.values()).set(1)


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
        for webhook in self._ending:
            until.add_metric((webhook.webhook_id, webhook.owner_id), webhook.until / SECOND)
        yield until


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
