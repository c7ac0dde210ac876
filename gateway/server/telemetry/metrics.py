"""Makes the metrics that metric_table declares, and has the methods that update them.

Values that a client can choose (a path, a method) are reduced to closed sets for labels.
It is one module because a metric and what counts it are read together.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, get_args

import prometheus_client
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from gateway.domain.accounts.credentials import Outcome as AuthOutcome
from gateway.domain.accounts.credentials import Scheme
from gateway.server.telemetry.meters import Counters, Timings
from gateway.server.telemetry.metric_table import TABLE, Reason, Surface
from gateway.server.telemetry.webhook_series import BacklogSeries, CertificateSeries, WebhookSeries
from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.errors import DatabaseFault
from outbox.observer import ClaimResult, Observer, Rescue
from outbox.queue.log.gauges import Gauges
from outbox.queue.log.waiting_counts import Waiting
from outbox.states import AttemptKind, Change, End, JobKind, JobState, OutcomeName

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MOVES = ("copying", "resting", "leaving", "arriving", "gone")
CLASSES = {1: "1xx", 2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}


def _pick(census: Callable[[], Mapping[str, int]], state: str) -> float:
    return census()[state]


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


class Metrics(Instruments, Observer):
    """The metrics of the web side and, as an Observer of the engine, of deliveries."""

    def count(self) -> None:
        """Put what was observed into the buckets of the histograms; call it every few seconds."""
        for timings in self.timings:
            timings.count()

    # For the web side.

    def request(
        self, surface: Surface, route: str, method: str, status: int, seconds: float
    ) -> None:
        """Count a completed request; `route` is a template or `unmatched`."""
        # Every page that is read has both, and their responses differ in the body alone.
        known = "GET" if method == "HEAD" else method if method in METHODS else "other"
        self._http[surface, known](seconds)
        self._requests[surface, route, known, CLASSES.get(status // 100, "5xx")].value += 1

    def rejected(self, surface: Surface, reason: Reason) -> None:
        """Count a request that a guard refused."""
        self._rejected[surface, reason].value += 1

    def operation(self, kind: str, outcome: str) -> None:
        """Count a GraphQL operation; `outcome` is ok, error or the limit that rejected it."""
        self._operations[kind, outcome].value += 1

    def authenticated(self, scheme: Scheme, outcome: AuthOutcome) -> None:
        """Count a checked credential."""
        self._auth[scheme, outcome].value += 1

    def mail(self, kind: str, result: str) -> None:
        """Count an attempt at a mail; `result` is sent, put_off or given_up."""
        self._mails[kind, result].value += 1

    def spans(self, result: str, count: int) -> None:
        """Count spans for the trace collector: "exported" or "dropped". Runs in any thread."""
        self._spans.labels(result).inc(count)

    def watch_connections(self, census: Callable[[], Mapping[str, int]]) -> None:
        """Call `census` at each scrape for the number of client sockets by state."""
        for state in census():
            self._sockets.labels(state).set_function(partial(_pick, census, state))

    def watch_pool(self, census: Callable[[], Mapping[str, int]]) -> None:
        """Call `census` at each scrape for the number of database connections by state."""
        for state in census():
            self._pool.labels(state).set_function(partial(_pick, census, state))

    def watch_key(self, created_at: Callable[[], int], refused: Callable[[], bool]) -> None:
        """Export the age of the key that encrypts secrets; it was made at `created_at()`.

        Microseconds, asked at each scrape, because the key may be replaced while the server runs.
        `refused` returns whether the file has become one that this server does not take.
        """
        self._file_refused.set_function(lambda: float(refused()))
        age = self._secret_age.labels("encryption")
        age.set_function(lambda: (self._clock.wall() - created_at()) / SECOND)

    def gauges(self, reading: Gauges | None) -> None:
        """Set a new reading of the outbox tables; None when another node reads them."""
        if reading is None:
            self._deliveries.clear()
            self._endpoints.clear()
            self._oldest.set(math.nan)
            self.backed_up.set(math.nan)
            self._moves.clear()
            self._move_changes.set(math.nan)
            self._closed_age.set(math.nan)
            self.backlogs.refresh(None)
            self.certificates.refresh(())
            self.webhooks.choose({}, self._clock.monotonic())
            self.webhooks.refresh(None, {})
            return
        for state in ("ready", "scheduled", "in_flight", "held", "parked"):
            self._deliveries.labels(state).set(reading.states[state])
        self._oldest.set(reading.oldest_ready_age)
        self.backed_up.set((reading.backed_up_at or 0) / SECOND)
        for move in MOVES:
            self._moves.labels(move).set(reading.moves[move])
        self._move_changes.set(reading.move_changes)
        self._closed_age.set(reading.closed_age)
        self.backlogs.refresh(reading.backlogs)
        self.certificates.refresh(reading.ending)
        for state in ("active", "paused", "disabled"):
            for circuit in ("closed", "open"):
                self._endpoints.labels(state, circuit).set(reading.endpoints[state, circuit])
        self.webhooks.refresh(reading.waiting, reading.standing)

    def choose(self, waiting: Mapping[str, Waiting]) -> list[str]:
        """Return the webhooks that get their own series, given the waiting deliveries of each."""
        return self.webhooks.choose(waiting, self._clock.monotonic())

    # Of the engine; outbox.observer.Observer documents each method.

    def purged(self, table: str, count: int) -> None:
        self._purged[(table,)].value += count

    def swept(self, table: str) -> None:
        self._swept.labels(table).set(self._clock.wall() / SECOND)

    def job_made(self, kind: JobKind, count: int) -> None:
        self._jobs_made[(kind,)].value += count

    def job_ended(self, kind: JobKind, state: JobState) -> None:
        self._jobs_ended[kind, state].value += 1

    def transaction(self, op: Literal["read", "write"], seconds: float) -> None:
        self._transactions[(op,)](seconds)

    def fault(self, kind: DatabaseFault) -> None:
        if kind == "full":
            self.found_full = self._clock.monotonic()
        self._faults[(kind,)].value += 1

    def tick(self) -> None:
        self.ticked = self._clock.monotonic()
        self.tick_at = self._clock.wall() / SECOND

    def fanned_out(self, events: Mapping[str, int], deliveries: Mapping[str, int]) -> None:
        for name, count in events.items():
            self._events[(name,)].value += count
        for name, count in deliveries.items():
            self._created[(name,)].value += count

    def left_out(self, events: Mapping[str, int]) -> None:
        for name, count in events.items():
            self._left_out[(name,)].value += count

    def claimed(self, result: ClaimResult, seconds: float) -> None:
        self._claims[(result,)].value += 1
        self._claim(seconds)

    def started(self, kind: AttemptKind, lag: float, limited: bool) -> None:
        attempt = "retry" if kind == "retry" else "limited" if limited else "first"
        self._lag[(attempt,)](max(lag, 0.0))

    def slots(self, total: int, busy: int) -> None:
        self.slots_total, self.slots_busy = total, busy

    def drain_ended(self) -> None:
        # Another process may send now, whose values are added to these or compared with them.
        self.slots(0, 0)
        self.clock_skew(0.0)
        self.webhooks.forget_windows()

    def attempt(
        self, webhook_id: str, host: str, kind: AttemptKind, outcome: OutcomeName, seconds: float,
        at: float,
    ) -> None:  # fmt: skip
        self._attempts[kind, outcome].value += 1
        self._attempt[("success" if outcome == "success" else "failure",)](seconds)
        # The drain's last turn is near enough: this is for webhooks without attempts for an hour.
        self.webhooks.attempt(webhook_id, host, outcome, seconds, now=self.ticked, wall=at)

    def delivery_finished(self, webhook_id: str, end: End, latency: float | None) -> None:
        self._finished[(end,)].value += 1
        if latency is not None:
            self._latency(max(latency, 0.0))
        self.webhooks.finished(webhook_id, end)

    def rescued(self, reason: Rescue, count: int) -> None:
        self._rescued[(reason,)].value += count

    def unreadable(self, webhook_id: str) -> None:
        self._unreadable.inc()

    def window(self, webhook_id: str, width: int) -> None:
        self.webhooks.window(webhook_id, width)

    def connection(self, reused: bool) -> None:
        self._connection[("true" if reused else "false",)].value += 1

    def transition(self, to: Change, reason: str) -> None:
        self._transitions[to, reason].value += 1


METRICS = web.AppKey("METRICS", Metrics)
