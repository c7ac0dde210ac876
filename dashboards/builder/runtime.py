"""Runtime and store: event loop, process, database, retention, the cost of watching."""

from __future__ import annotations

from dashboards.builder.dashboard import Dashboard, Row
from dashboards.builder.panels import RED, Panel, Query, quantiles, up_to
from dashboards.builder.promql import INSTALLATION, highest, increase, of, quantile, rate, whole

LAG, SPENT = "event_loop_lag_seconds", "db_transaction_duration_seconds"

PROCESS = Row(
    "Process",
    (
        Panel(
            "Delay of the event loop",
            "How late the event loop wakes up, 99th percentile of each node. Everything else "
            "waits for it.",
            "s", (Query(quantile(0.99, LAG, by="instance"), "{{instance}}"),),
            steps=up_to(0.05, 0.25), lines=True, alert="EventLoopLag",
        ),
        Panel(
            "Delay of the event loop, distribution",
            "How often the loop woke up how late, per second.",
            "s", (Query(rate(f"{LAG}_bucket", by="le"), "{{le}}"),), "heatmap",
        ),
        Panel(
            "CPU",
            "Processor time per second of each node; 1 is one whole core.",
            "percentunit", (Query(rate("process_cpu_seconds_total", by="instance"),
                                  "{{instance}}"),),
        ),
        Panel(
            "Memory",
            "Resident memory and address space of each node.",
            "bytes",
            (
                Query(of("process_resident_memory_bytes"), "{{instance}} resident"),
                Query(of("process_virtual_memory_bytes"), "{{instance}} virtual"),
            ),
        ),
        Panel(
            "Open files",
            "Sockets and files that each node has open, as a share of what it may open.",
            "percentunit",
            (Query(f"{of('process_open_fds')} / {of('process_max_fds')}", "{{instance}}"),),
            steps=up_to(0.7, 0.9), lines=True,
        ),
        Panel(
            "Garbage collections",
            "Collections per second, by generation.",
            "ops", (Query(rate("python_gc_collections_total", by="generation"),
                          "generation {{generation}}"),),
        ),
        Panel(
            "Processes",
            "Processes of each node that answer, those of [server] processes that do not, and "
            "how many were started again within the time range.",
            "short",
            (
                Query(increase("server_process_restarts_total", by="instance"),
                      "{{instance}} started again"),
                Query(of("server_processes", 'state="answering"'), "{{instance}} answering"),
                Query(of("server_processes", 'state="missing"'), "{{instance}} missing"),
            ),
            width=6, alert="ProcessMissing",
        ),
        Panel(
            "Garbage",
            "Objects that collections freed per second, and those that they could not free.",
            "ops",
            (
                Query(rate("python_gc_objects_collected_total"), "freed"),
                Query(rate("python_gc_objects_uncollectable_total"), "not freed"),
            ),
            width=6, colours={"not freed": RED},
        ),
        Panel(
            "Running since",
            "Time since each node started. A saw tooth is a node that crashes again and again.",
            "s", (Query(f"time() - {of('process_start_time_seconds')}", "{{instance}}"),),
            width=6, alert="CrashLoop",
        ),
        Panel(
            "Clock",
            "How far each node's clock is ahead of the database server's. Past 60 s a node sends "
            "nothing. Always 0 on SQLite.",
            "s", (Query(of("clock_skew_seconds"), "{{instance}}"),), width=6, top=0,
            alert="ClockSkew",
        ),
    ),
)  # fmt: skip

STORE = Row(
    "Database",
    (
        Panel(
            "Transactions",
            "Transactions per second, reads and writes.",
            "ops", (Query(rate(f"{SPENT}_count", by="op"), "{{op}}"),), stacked=True,
        ),
        Panel(
            "Duration of writes",
            "Time of a write as its caller sees it, waiting and repeats included.",
            "s", quantiles(SPENT, 'op="write"'),
        ),
        Panel(
            "Duration of reads",
            "Time of a read as its caller sees it, waiting included.",
            "s", quantiles(SPENT, 'op="read"'),
        ),
        Panel(
            "Troubles",
            "Faults of the database per second, by kind. Busy and serialization are repeated by "
            "themselves; io, full, connection and corrupt need somebody.",
            "ops", (Query(rate("db_errors_total", by="kind"), "{{kind}}"),),
            colours={"corrupt": RED}, alert="DbErrors",
        ),
        Panel(
            "Connections to PostgreSQL",
            "Connections of each node for requests: busy, idle, and those that it may still open. "
            "Without idle and unopened ones, requests wait. SQLite has none.",
            "short",
            (Query(f"sum by (state) ({of('db_pool_connections')})", "{{state}}"),), stacked=True,
        ),
        Panel(
            "Size of the database",
            "The database and its write-ahead log; that of PostgreSQL for a role that may see it. "
            "A log above 256 MiB of SQLite means that a reader has been open for too long.",
            "bytes",
            (
                Query(of("db_file_bytes"), "{{instance}} file"),
                Query(of("db_wal_bytes"), "{{instance}} log"),
            ),
            alert="WalLarge",
        ),
        Panel(
            "Room on the disk",
            "Free space for the database, and what is left in six hours if the last hour goes on; "
            "of PostgreSQL with [database] disk_bytes.",
            "bytes",
            (
                Query(of("db_free_bytes"), "{{instance}} free"),
                Query(f"predict_linear({of('db_free_bytes')}[1h], 6 * 3600)",
                      "{{instance}} in 6 h"),
            ),
            alert="DiskFillsIn6h",
        ),
        Panel(
            "Rows removed",
            "Rows deleted per second because their time was over, by table.",
            "ops", (Query(rate("retention_purged_total", by="table"), "{{table}}"),),
            stacked=True,
        ),
        Panel(
            "Since everything expired was removed",
            "Time since nothing of a table was past its time. Each has its own period; above a day "
            "something is wrong.",
            "s",
            (Query(f"time() - {highest('retention_last_success_timestamp_seconds', by='table')}",
                   "{{table}}"),),
            alert="RetentionStale",
        ),
        Panel(
            "Since the last backup",
            "Time since the moment that the last complete `carteiro backup` holds. Backups by "
            "other means are not known here.",
            "s",
            (Query("time() - (job:backup_last_success_timestamp_seconds:max"
                   f"{{{INSTALLATION}}} > 0)", "{{job}}"),),
            steps=up_to(86_400, 26 * 3_600), lines=True, empty="no backup", alert="BackupStale",
        ),
        Panel(
            "Accounts that move",
            "Accounts that `carteiro move` takes to another database or from there, by their state "
            "in this one; those that are gone stay gone.",
            "short", (Query(whole("app_owner_moves", by="state"), "{{state}}"),),
        ),
        Panel(
            "Left to copy",
            "Rows of accounts that move away that changed and are not copied yet, up to 100,000. "
            "Each pass of the command copies them; when they only grow, no command runs.",
            "short", (Query(highest("app_owner_move_changes", by="job"), "{{job}}"),),
        ),
        Panel(
            "Closed for a move",
            "Time for which an account that moves has accepted no writes here; a second or two is "
            "usual.",
            "s", (Query(highest("app_owner_closed_seconds", by="job"), "{{job}}"),),
            steps=up_to(2, 10), lines=True, alert="OwnerClosed",
        ),
    ),
)  # fmt: skip

WATCHING = Row(
    "Watching, and keys",
    (
        Panel(
            "Cost of readings",
            "Time of the last reading of the tables and of the files, per node.",
            "s", (Query(of("metrics_collection_duration_seconds"), "{{instance}} {{collector}}"),),
        ),
        Panel(
            "Failed readings",
            "Readings per second that failed; their figures stay as they were.",
            "ops", (Query(rate("metrics_collection_errors_total", by="collector"),
                          "{{collector}}"),),
        ),
        Panel(
            "Scrapes",
            "Time of a scrape as Prometheus sees it, per node.",
            "s", (Query(of("scrape_duration_seconds"), "{{instance}}"),),
        ),
        Panel(
            "Series",
            "Series that each node exports. [metrics] webhook_series bounds those of webhooks.",
            "short", (Query(of("scrape_samples_scraped"), "{{instance}}"),),
        ),
        Panel(
            "Age of the newest key",
            "Time since the newest key of the key file was made; it encrypts secrets at rest. "
            "Add a new one once a quarter.",
            "s", (Query(whole("secret_age_seconds", by="kind"), "{{kind}}"),),
            steps=up_to(86_400 * 80, 86_400 * 90), lines=True, alert="SecretOld",
        ),
        Panel(
            "Client certificates that end",
            "Time that is left to client certificates of webhooks that end within 30 days; below "
            "zero they have ended. Their owners must replace them.",
            "s",
            (Query("min by (webhook, owner) ("
                   f"webhook_client_certificate_end_timestamp_seconds{{{INSTALLATION}}})"
                   " - time()", "{{webhook}}"),),
            lines=True, empty="none ends soon", alert="ClientCertificateEnds",
        ),
        Panel(
            "Secrets that cannot be decrypted",
            "Deliveries per second that were put back, because a key that their webhook needs is "
            "missing from the key file; and key files that a running node refuses, 1 per node.",
            "short",
            (
                Query(rate("webhook_unreadable_total"), "deliveries put back"),
                Query(of("secret_key_file_refused"), "{{instance}} refuses its file"),
            ),
            alert="SecretUnreadable",
        ),
        Panel(
            "Spans for the trace collector",
            "Spans per second that the collector at [tracing] endpoint took, or that were dropped "
            "because it was slow or away. Zero without an endpoint.",
            "ops", (Query(rate("tracing_spans_total", by="result"), "{{result}}"),),
        ),
    ),
)  # fmt: skip

RUNTIME = Dashboard(
    "runtime",
    "Carteiro / Runtime and store",
    "Event loop, process, database, retention and keys of each node.",
    (PROCESS, STORE, WATCHING),
)
