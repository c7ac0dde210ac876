"""Declares every metric of a process: name, kind, help text, labels, buckets, and its sum.

Label values come from closed sets. gateway.server.telemetry.metrics makes them, and
gateway.server.processes.sums adds those of several processes up. It is one module because a
reader looks for every metric in one place.
"""

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import product
from typing import Literal, get_args

from gateway.domain.accounts import account_mails
from gateway.domain.accounts.credentials import Scheme
from gateway.domain.sales import document_mails
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
Reason = Literal["auth", "forbidden", "rate_limited", "too_large", "slow", "bad_request", "csrf"]
Labels = tuple[str, ...]
Kind = Literal["counter", "gauge", "histogram"]
MAILS = (
    "reset", "verify", "secured", "linked", "order_received", "order_paid",
    "order_canceled", "order_expired", "failing", "disabled", "recovered", *account_mails.KINDS,
    *document_mails.KINDS,
)  # fmt: skip
OPENS_NOTHING = ("success", *NOT_THE_RECEIVER)


@dataclass(frozen=True)
class Metric:
    """One metric.

    `zero` are the label values of the series that are there at 0 from the start, so that the first
    increase is visible; one without labels always is. `added`: the gauge of a node is the sum of
    its processes; of the others the value farthest from zero stands for all. `threads`: other
    threads than that of the event loop count it too.
    """

    kind: Kind
    name: str
    text: str
    _: KW_ONLY
    labels: Labels = ()
    buckets: tuple[float, ...] = ()
    zero: Collection[Labels] = ()
    added: bool = False
    threads: bool = False


def each(*values: Collection[str]) -> Collection[Labels]:
    """Return every combination of these label values."""
    return tuple(product(*values))


counter, gauge, histogram = (partial(Metric, kind) for kind in get_args(Kind))

TABLE = (
    # The web side.
    histogram(
        "http_server_request_duration_seconds",
        "Duration of a request.",
        labels=("surface", "method"),
        buckets=HTTP,
    ),
    counter(
        "http_server_requests_total",
        "Completed requests.",
        labels=("surface", "route", "method", "status_class"),
    ),
    gauge("http_server_active_requests", "Requests in flight.", labels=("surface",), added=True),
    gauge("http_server_connections", "Open client sockets.", labels=("state",), added=True),
    counter(
        "http_requests_rejected_total",
        "Requests refused by a guard: credentials, rate, size, slowness, form, CSRF.",
        labels=("surface", "reason"),
        zero=each(("api",), [one for one in get_args(Reason) if one != "csrf"]),
    ),
    counter(
        "graphql_operations_total",
        "GraphQL operations: ok, error (a field failed), or the check that refused the "
        "document, whose type is then unknown.",
        labels=("type", "outcome"),
        zero=each(("query", "mutation"), ("ok", "error")),
    ),
    counter(
        "auth_attempts_total",
        "Checked credentials.",
        labels=("scheme", "outcome"),
        zero=(*each(get_args(Scheme), ("ok", "bad")), ("password", "throttled")),
    ),
    counter(
        "mail_attempts_total",
        "Mails to customers, buyers and owners: sent, put_off (tried again later) or given_up.",
        labels=("kind", "result"),
        zero=each(MAILS, ("sent", "put_off", "given_up")),
    ),
    histogram(
        "password_hash_duration_seconds",
        "Duration of a password hash, including the wait for its turn.",
        buckets=HASH,
    ),
    gauge("password_hash_queue", "Password hashes in progress.", added=True),
    histogram("event_loop_lag_seconds", "Delay of the event loop.", buckets=LOOP),
    counter("outbox_events_total", "Events written, operational ones too.", labels=("event_type",)),
    counter(
        "outbox_deliveries_created_total",
        "Deliveries created by fan-out.",
        labels=("event_type",),
    ),
    counter(
        "outbox_deliveries_left_out_total",
        "Deliveries not created because the conditions of the webhook did not hold.",
        labels=("event_type",),
    ),
    gauge(
        "outbox_deliveries",
        "Waiting deliveries; only on the leader; minutes old when there are a million. held"
        " is counted up to 20,000.",
        labels=("state",),
    ),
    gauge(
        "outbox_oldest_ready_age_seconds",
        "Age of the oldest due delivery that is not claimed, or event that is not fanned out.",
    ),
    histogram(
        "outbox_attempt_lag_seconds",
        "Time from the due time of an attempt to its request, without the wait for other "
        "requests to the same webhook; a pause of the node for more than 5 s counts. limited is "
        "a first attempt at a webhook that fails or responds slowly, and so gets one request at "
        "a time.",
        labels=("attempt",),
        buckets=LAG,
        zero=each(("first", "limited", "retry")),
    ),
    counter(
        "outbox_claims_total",
        "Claims of due deliveries.",
        labels=("result",),
        zero=each(("rows", "empty", "error")),
    ),
    histogram("outbox_claim_duration_seconds", "Duration of a claim.", buckets=SHORT),
    counter(
        "outbox_rescued_total",
        "Deliveries rescued from lost claims: of an earlier process (startup), of a dead "
        "node (lease), or lost in a failover (unheld). None uses up a try.",
        labels=("reason",),
        zero=each(("startup", "lease", "unheld")),
    ),
    counter(
        "webhook_unreadable_total",
        "Deliveries put back because a secret or the headers of their webhook cannot be "
        "decrypted; they wait.",
    ),
    counter("outbox_fenced_acks_total", "Results not recorded because the claim was lost."),
    counter("outbox_deferred_settles_total", "Results recorded later because the lane was locked."),
    counter(
        "outbox_slow_sends_cut_total",
        "Slow requests cut because too many were open, of one owner or in all; first those "
        "to webhooks that do not answer.",
    ),
    counter(
        "outbox_drain_faults_total",
        "Drain loops that an internal error ended; the next one continues.",
    ),
    gauge(
        "clock_skew_seconds",
        "Seconds by which this node's clock is ahead of the database server's (PostgreSQL);"
        " past 60 s nothing is sent.",
    ),
    gauge("clock_time_seconds", "The time by this node's clock."),
    gauge("outbox_scheduler_last_tick_timestamp_seconds", "Time of the last drain loop."),
    gauge("outbox_slots", "Maximum number of concurrent requests to webhooks.", added=True),
    gauge(
        "outbox_slots_busy",
        "Requests to webhooks in progress; up to an eighth above outbox_slots while owners "
        "with many keep all slots in use.",
        added=True,
    ),
    counter(
        "webhook_attempts_total",
        "Requests to webhooks, by kind and outcome.",
        labels=("attempt", "outcome"),
        zero=each(("first", "retry", "probe"), get_args(OutcomeName)),
    ),
    histogram(
        "webhook_attempt_duration_seconds",
        "Duration of a request to a webhook.",
        labels=("result",),
        buckets=ATTEMPT,
        zero=each(("success", "failure")),
    ),
    histogram(
        "webhook_delivery_latency_seconds",
        "Time from the event's commit to the 2xx response.",
        buckets=LATENCY,
    ),
    counter(
        "webhook_deliveries_finished_total",
        "Finished deliveries, whatever ended them.",
        labels=("result",),
        zero=each(("delivered", "exhausted", "gone", "cancelled", "dead")),
    ),
    gauge(
        "webhook_endpoints",
        "Webhooks. A circuit is open from the tenth failure in a row to the next success; "
        "the webhook then gets only probes.",
        labels=("state", "circuit"),
    ),
    counter(
        "webhook_circuit_transitions_total",
        "Circuits that attempts opened and closed, and webhooks that they disabled. The "
        "reason is the outcome of the last attempt, or gone (410) or failing (for five "
        "days).",
        labels=("to", "reason"),
        zero=(
            ("closed", "success"),
            ("disabled", "gone"),
            ("disabled", "failing"),
            *each(("open",), [one for one in get_args(OutcomeName) if one not in OPENS_NOTHING]),
        ),
    ),
    counter(
        "webhook_connections_total",
        "Connections used for requests.",
        labels=("reused",),
        zero=each(("true", "false")),
    ),
    counter("webhook_response_truncated_total", "Responses longer than the stored part."),
    counter("webhook_redirects_refused_total", "Redirect responses, which are not followed."),
    counter(
        "webhook_job_deliveries_total",
        "Deliveries made by jobs, without those that the command carteiro replay makes itself.",
        labels=("kind",),
        zero=each(get_args(JobKind)),
    ),
    counter(
        "webhook_jobs_ended_total",
        "Jobs that are done or cancelled, also by a fault.",
        labels=("kind", "result"),
        zero=each(get_args(JobKind), ("done", "cancelled")),
    ),
    counter(
        "retention_purged_total",
        "Rows deleted after their retention time.",
        labels=("table",),
    ),
    gauge(
        "retention_last_success_timestamp_seconds",
        "Time when the last deletion of expired rows was complete.",
        labels=("table",),
    ),
    gauge(
        "backup_last_success_timestamp_seconds",
        "Time of the data in the last complete backup; 0 before the first one; only on the leader.",
    ),
    gauge(
        "app_owner_moves",
        "Owners that move to or from another database, or have moved away, by their state "
        "in this one; only on the leader.",
        labels=("state",),
    ),
    gauge(
        "app_owner_move_changes",
        "Changes of owners who move away that no pass has copied yet, up to 100,000; only "
        "on the leader.",
    ),
    gauge(
        "app_owner_closed_seconds",
        "Time for which the owner closed longest for a move is closed; only on the leader.",
    ),
    histogram(
        "db_transaction_duration_seconds",
        "Duration of a transaction for its caller, waits and repeats included.",
        labels=("op",),
        buckets=SHORT,
        zero=each(("read", "write")),
    ),
    counter(
        "db_errors_total",
        "Errors of the database; outcome_unknown counts COMMITs without a known outcome, in"
        " addition to their cause.",
        labels=("kind",),
        zero=each(get_args(DatabaseFault)),
    ),
    gauge(
        "db_pool_connections",
        "Connections of this node to PostgreSQL for requests: busy, idle, and those that it"
        " may still open.",
        labels=("state",),
        added=True,
    ),
    counter(
        "tracing_spans_total",
        "Spans for the trace collector: exported, or dropped because it was slow or away.",
        labels=("result",),
        zero=each(("exported", "dropped")),
        threads=True,
    ),
    gauge("db_file_bytes", "Size of the database."),
    gauge(
        "db_wal_bytes",
        "Size of the write-ahead log; on PostgreSQL NaN, unless the role is in pg_monitor.",
    ),
    gauge(
        "db_free_bytes",
        "Free space for the database; on PostgreSQL the setting disk_bytes less all "
        "databases that the role may connect to and the log, NaN without it.",
    ),
    gauge(
        "metrics_collection_duration_seconds",
        "Duration of the last collection.",
        labels=("collector",),
    ),
    counter(
        "metrics_collection_errors_total",
        "Collections that failed.",
        labels=("collector",),
        zero=each(("database", "files")),
    ),
    gauge("secret_age_seconds", "Age of the newest key, which encrypts secrets.", labels=("kind",)),
    gauge(
        "secret_key_file_refused",
        "1 while the key file on disk lacks the key that encrypts secrets, so that this "
        "process keeps the keys that it has; else 0.",
    ),
    gauge(
        "server_processes",
        "Processes of this node: answering, or missing because they did not start or do not"
        " answer.",
        labels=("state",),
    ),
    counter("server_process_restarts_total", "Ended processes that were started again."),
    gauge(
        "app_build_info",
        "Versions of this process and its database engine; console is the address to which "
        "the dashboards link.",
        labels=("version", "revision", "python", "sqlite", "backend", "console"),
    ),
)
ADDED = frozenset(metric.name for metric in TABLE if metric.added)
"""The gauges whose sum is the value of a node."""
