"""Defines every metric of this process: name, help text, labels and buckets.

gateway.server.telemetry.metrics updates them. Label values come from closed sets.
It is one module because a reader looks for every metric in one place.
"""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, get_args

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from gateway.domain.accounts import account_mails
from gateway.domain.accounts.credentials import Scheme
from gateway.server.telemetry.backlog_series import BacklogSeries
from gateway.server.telemetry.certificate_series import CertificateSeries
from gateway.server.telemetry.meters import Counters, Timings
from gateway.server.telemetry.webhook_series import WebhookSeries
from outbox.clock import Clock
from outbox.durations import SECOND
from outbox.errors import DatabaseFault
from outbox.states import NOT_THE_RECEIVER, JobKind, OutcomeName

# The upper limits of the buckets of histograms, in seconds.
HTTP = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
LAG = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
ATTEMPT = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30)
LATENCY = (0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 86400, 259200)
SHORT = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
# With a limit at the threshold of the alert EventLoopLag, whose percentile is interpolated.
LOOP = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5)
HASH = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)

Surface = Literal["api", "graphql", "console", "mcp", "probe"]
Reason = Literal[
    "auth", "forbidden", "rate_limited", "too_large", "slow", "bad_request", "csrf"
]  # fmt: skip


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

        def counter(name: str, text: str, *labels: str) -> Counters:
            return Counters(name, text, labels, registry)

        def single(name: str, text: str) -> Counter:
            return Counter(name, text, registry=registry)

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(name, text, labels, registry=registry)

        self.timings: list[Timings] = []  # all histograms

        def timings(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Timings:
            self.timings.append(made := Timings(name, text, buckets, labels, registry))
            return made

        def timing(name: str, text: str, buckets: tuple[float, ...]) -> Callable[[float], None]:
            return timings(name, text, buckets)[()]

        # The web side.
        self._http = timings(
            "http_server_request_duration_seconds", "Duration of a request.", HTTP,
            "surface", "method",
        )  # fmt: skip
        # Not in the histogram: its buckets would multiply the series of each route.
        self._requests = counter(
            "http_server_requests_total", "Completed requests.",
            "surface", "route", "method", "status_class",
        )  # fmt: skip
        active = gauge("http_server_active_requests", "Requests in flight.", "surface")
        # Plain numbers, read at each scrape, save two locked calls per request.
        self.active: dict[Surface, int] = dict.fromkeys(get_args(Surface), 0)
        for surface in self.active:
            active.labels(surface).set_function(partial(self.active.__getitem__, surface))
        self._sockets = gauge("http_server_connections", "Open client sockets.", "state")
        self._rejected = counter(
            "http_requests_rejected_total",
            "Requests refused by a guard: credentials, rate, size, slowness, form, CSRF.",
            "surface", "reason",
        )  # fmt: skip
        self._operations = counter(
            "graphql_operations_total",
            "GraphQL operations: ok, error (a field failed), or the check that refused the "
            "document, whose type is then unknown.",
            "type", "outcome",
        )  # fmt: skip
        self._auth = counter("auth_attempts_total", "Checked credentials.", "scheme", "outcome")
        self._mails = counter(
            "mail_attempts_total",
            "Mails to customers, buyers and owners: sent, put_off (tried again later) or given_up.",
            "kind", "result",
        )  # fmt: skip
        self.password_hashed = timing(
            "password_hash_duration_seconds",
            "Duration of a password hash, including the wait for its turn.",
            HASH,
        )
        self.password_queue = gauge("password_hash_queue", "Password hashes in progress.").set
        self.loop_lag = timing("event_loop_lag_seconds", "Delay of the event loop.", LOOP)

        # The delivery side.
        self._events = counter(
            "outbox_events_total", "Events written, operational ones too.", "event_type"
        )
        self._created = counter(
            "outbox_deliveries_created_total", "Deliveries created by fan-out.", "event_type"
        )
        self._left_out = counter(
            "outbox_deliveries_left_out_total",
            "Deliveries not created because the conditions of the webhook did not hold.",
            "event_type",
        )
        self._deliveries = gauge(
            "outbox_deliveries",
            "Waiting deliveries; only on the leader; minutes old when there are a million. "
            "held is counted up to 20,000.",
            "state",
        )
        self._oldest = gauge(
            "outbox_oldest_ready_age_seconds",
            "Age of the oldest due delivery that is not claimed.",
        )
        self._lag = timings(
            "outbox_attempt_lag_seconds",
            "Time from the due time of an attempt to its request, without the wait for other "
            "requests to the same webhook. limited is a first attempt at a webhook that "
            "fails or responds slowly, and so gets one request at a time.",
            LAG, "attempt",
        )  # fmt: skip
        self._claims = counter("outbox_claims_total", "Claims of due deliveries.", "result")
        self._claim = timing("outbox_claim_duration_seconds", "Duration of a claim.", SHORT)
        self._rescued = counter(
            "outbox_rescued_total",
            "Deliveries rescued from lost claims: of an earlier process (startup), of a dead "
            "node (lease), or lost in a failover (unheld). None uses up a try.",
            "reason",
        )
        self._unreadable = single(
            "webhook_unreadable_total",
            "Deliveries put back because a secret or the headers of their webhook cannot be "
            "decrypted; they wait.",
        )
        self.fenced = single(
            "outbox_fenced_acks_total", "Results not recorded because the claim was lost."
        ).inc
        self.deferred = single(
            "outbox_deferred_settles_total", "Results recorded later because the lane was locked."
        ).inc
        self.cut = single(
            "outbox_slow_sends_cut_total",
            "Slow requests cut because too many were open, of one owner or in all; first "
            "those to webhooks that do not answer.",
        ).inc
        self.restarted = single(
            "outbox_drain_faults_total",
            "Drain loops that an internal error ended; the next one continues.",
        ).inc
        self.clock_skew = gauge(
            "clock_skew_seconds",
            "Seconds by which this node's clock is ahead of the database server's "
            "(PostgreSQL); past 60 s nothing is sent.",
        ).set
        # Rules compare it with times of this node and with Prometheus's clock.
        gauge("clock_time_seconds", "The time by this node's clock.").set_function(
            lambda: clock.wall() / SECOND
        )
        # Plain numbers, as above: each turn of the drain sets them.
        self.tick_at = self.slots_total = self.slots_busy = 0.0
        gauge(
            "outbox_scheduler_last_tick_timestamp_seconds", "Time of the last drain loop."
        ).set_function(lambda: self.tick_at)
        gauge("outbox_slots", "Maximum number of concurrent requests to webhooks.").set_function(
            lambda: self.slots_total
        )
        gauge(
            "outbox_slots_busy",
            "Requests to webhooks in progress; up to an eighth above outbox_slots while "
            "owners with many keep all slots in use.",
        ).set_function(lambda: self.slots_busy)
        self._attempts = counter(
            "webhook_attempts_total", "Requests to webhooks, by kind and outcome.",
            "attempt", "outcome",
        )  # fmt: skip
        self._attempt = timings(
            "webhook_attempt_duration_seconds", "Duration of a request to a webhook.", ATTEMPT,
            "result",
        )  # fmt: skip
        self._latency = timing(
            "webhook_delivery_latency_seconds",
            "Time from the event's commit to the 2xx response.", LATENCY,
        )  # fmt: skip
        self._finished = counter(
            "webhook_deliveries_finished_total",
            "Finished deliveries, whatever ended them.",
            "result",
        )
        self._endpoints = gauge(
            "webhook_endpoints",
            "Webhooks. A circuit is open from the tenth failure in a row to the next "
            "success; the webhook then gets only probes.",
            "state", "circuit",
        )  # fmt: skip
        self._transitions = counter(
            "webhook_circuit_transitions_total",
            "Circuits that attempts opened and closed, and webhooks that they disabled. The "
"reason is the outcome of the last attempt, or gone (410) or failing (for five "
"days).",
            "to", "reason",
        )  # fmt: skip
        self._connection = counter(
            "webhook_connections_total", "Connections used for requests.", "reused"
        )
        self.truncated = single(
            "webhook_response_truncated_total", "Responses longer than the stored part."
        ).inc
        self.redirect_refused = single(
            "webhook_redirects_refused_total", "Redirect responses, which are not followed."
        ).inc

        self._jobs_made = counter(
            "webhook_job_deliveries_total",
            "Deliveries made by jobs, without those that the command carteiro replay makes itself.",
            "kind",
        )
        self._jobs_ended = counter(
            "webhook_jobs_ended_total",
            "Jobs that are done or cancelled, also by a fault.", "kind", "result",
        )  # fmt: skip

        # Retention.
        self._purged = counter(
            "retention_purged_total", "Rows deleted after their retention time.", "table"
        )
        self._swept = gauge(
            "retention_last_success_timestamp_seconds",
            "Time when the last deletion of expired rows was complete.", "table",
        )  # fmt: skip

        self.backed_up = gauge(
            "backup_last_success_timestamp_seconds",
            "Time of the data in the last complete backup; 0 before the first one; only on "
            "the leader.",
        )

        self._moves = gauge(
            "app_owner_moves",
            "Owners that move to or from another database, or have moved away, by their state in "
            "this one; only on the leader.", "state",
        )  # fmt: skip
        changed = "Changes of owners who move away that no pass has copied yet, up to 100,000; "
        self._move_changes = gauge("app_owner_move_changes", changed + "only on the leader.")
        self._closed_age = gauge(
            "app_owner_closed_seconds",
            "Time for which the owner closed longest for a move is closed; only on the leader.",
        )

        # The store and this process.
        self._transactions = timings(
            "db_transaction_duration_seconds",
            "Duration of a transaction for its caller, waits and repeats included.",
            SHORT,
            "op",
        )
        self._faults = counter(
            "db_errors_total",
            "Errors of the database; outcome_unknown counts COMMITs without a known outcome, "
            "in addition to their cause.",
            "kind",
        )
        self._pool = gauge(
            "db_pool_connections",
            "Connections of this node to PostgreSQL for requests: busy, idle, and those that "
            "it may still open.",
            "state",
        )
        # Another thread counts them, so it takes the library's lock.
        self._spans = Counter(
            "tracing_spans_total",
            "Spans for the trace collector: exported, or dropped because it was slow or away.",
            ("result",),
            registry=registry,
        )
        self.file_bytes = gauge("db_file_bytes", "Size of the database.")
        self.wal_bytes = gauge(
            "db_wal_bytes",
            "Size of the write-ahead log; on PostgreSQL NaN, unless the role is in pg_monitor.",
        )
        self.free_bytes = gauge(
            "db_free_bytes",
            "Free space for the database; on PostgreSQL the setting disk_bytes less all "
            "databases that the role may connect to and the log, NaN without it.",
        )
        for size in (self.file_bytes, self.wal_bytes, self.free_bytes):
            # Until it is measured. PostgreSQL tells neither the size nor the rest of its disk.
            size.set(math.nan)
        self.collection_seconds = gauge(
            "metrics_collection_duration_seconds", "Duration of the last collection.", "collector"
        )
        self.collection_errors = counter(
            "metrics_collection_errors_total", "Collections that failed.", "collector"
        )
        self._secret_age = gauge(
            "secret_age_seconds", "Age of the newest key, which encrypts secrets.", "kind"
        )
        self._file_refused = gauge(
            "secret_key_file_refused",
            "1 while the key file on disk lacks the key that encrypts secrets, so that this "
            "process keeps the keys that it has; else 0.",
        )
        processes = gauge(
            "server_processes",
            "Processes of this node: answering, or missing because they did not start or do "
            "not answer.",
            "state",
        )
        single("server_process_restarts_total", "Ended processes that were started again.")
        # Of several, their supervisor counts them (gateway.server.processes.sums).
        processes.labels("answering").set(1)
        processes.labels("missing").set(0)
        info = gauge(
            "app_build_info",
            "Versions of this process and its database engine; console is the address to "
            "which the dashboards link.",
            *build,
        )
        info.labels(*build.values()).set(1)
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Create the series of closed label sets at 0, so that the first increase is visible."""
        for attempt in ("first", "limited", "retry"):
            self._lag[(attempt,)]
        for kind in ("first", "retry", "probe"):
            for outcome in get_args(OutcomeName):
                self._attempts[kind, outcome]
        for result in ("success", "failure"):
            self._attempt[(result,)]
        for end in ("delivered", "exhausted", "gone", "cancelled", "dead"):
            self._finished[(end,)]
        for outcome in get_args(OutcomeName):
            if outcome == "success":
                self._transitions["closed", outcome]
            elif outcome not in NOT_THE_RECEIVER:
                self._transitions["open", outcome]
        for cause in ("gone", "failing"):
            self._transitions["disabled", cause]
        for result in ("rows", "empty", "error"):
            self._claims[(result,)]
        for reason in ("startup", "lease", "unheld"):
            self._rescued[(reason,)]
        for reused in ("true", "false"):
            self._connection[(reused,)]
        for op in ("read", "write"):
            self._transactions[(op,)]
        for fault in get_args(DatabaseFault):
            self._faults[(fault,)]
        for job in get_args(JobKind):
            self._jobs_made[(job,)]
            for ended in ("done", "cancelled"):
                self._jobs_ended[job, ended]
        for result in ("exported", "dropped"):
            self._spans.labels(result)
        for collector in ("database", "files"):
            self.collection_errors[(collector,)]
        for mail in (
            "reset", "verify", "secured", "order_received", "order_paid", "order_canceled",
            "order_expired", "failing", "disabled", "recovered", *account_mails.KINDS,
        ):  # fmt: skip
            for result in ("sent", "put_off", "given_up"):
                self._mails[mail, result]
        for scheme in get_args(Scheme):
            for outcome in ("ok", "bad"):
                self._auth[scheme, outcome]
        self._auth["password", "throttled"]
        for kind in ("query", "mutation"):
            for outcome in ("ok", "error"):
                self._operations[kind, outcome]
        for why in ("auth", "forbidden", "rate_limited", "too_large", "slow", "bad_request"):
            self._rejected["api", why]
