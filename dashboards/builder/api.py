"""The API: rate, errors and duration per surface, routes, refusals, credentials, GraphQL."""

from __future__ import annotations

from dashboards.builder.dashboard import Dashboard, Row
from dashboards.builder.panels import RED, Column, Panel, Query, quantiles, up_to
from dashboards.builder.promql import increase, of, quantile, rate, ratio

REQUESTS, HTTP = "http_server_requests_total", "http_server_request_duration_seconds"
FAILED = 'status_class="5xx"'
PUBLIC = 'surface!="probe"'
REFUSED = f'{PUBLIC},status_class="4xx"'
ROUTE = "surface, route, method"
ASKED = increase(REQUESTS, PUBLIC, ROUTE)

SURFACES = Row(
    "Requests",
    (
        Panel(
            "Rate",
            "Requests answered per second, by surface: REST API, GraphQL, console, probes.",
            "reqps", (Query(rate(REQUESTS, by="surface"), "{{surface}}"),), stacked=True,
        ),
        Panel(
            "Server errors",
            "Share of requests with a 5xx response, by surface. 503 with Retry-After, while the "
            "database is away, is among them.",
            "percentunit",
            (Query(f"({rate(REQUESTS, FAILED, 'surface')} or 0 * {rate(REQUESTS, by='surface')})\n"
                   f"/ ({rate(REQUESTS, by='surface')} > 0)", "{{surface}}"),),
            steps=up_to(0.001, 0.01), alert="ApiErrorBudgetFast",
        ),
        Panel(
            "Duration",
            "99th percentile of the time to answer, by surface.",
            "s", (Query(quantile(0.99, HTTP, by="surface"), "{{surface}}"),),
            alert="ApiLatencyBudget",
        ),
        Panel(
            "Duration of REST and GraphQL requests",
            "Time to answer. The promise is 250 ms for 99 %.",
            "s", quantiles(HTTP, 'surface=~"api|graphql"'), steps=up_to(0.25, 1), lines=True,
        ),
        Panel(
            "Duration, distribution",
            "How many REST and GraphQL requests took which time, per second.",
            "s", (Query(rate(f"{HTTP}_bucket", 'surface=~"api|graphql"', "le"), "{{le}}"),),
            "heatmap",
        ),
        Panel(
            "Responses by status",
            "Responses per second by class of status, without probes.",
            "reqps", (Query(rate(REQUESTS, PUBLIC, "status_class"), "{{status_class}}"),),
            stacked=True, colours={"5xx": RED},
        ),
        Panel(
            "Duration by method",
            "95th percentile of the time to answer, by HTTP method, without probes.",
            "s", (Query(quantile(0.95, HTTP, PUBLIC, "method"), "{{method}}"),),
        ),
        Panel(
            "In flight",
            "Requests under way, by surface. A rising line at a steady rate means that something "
            "below is slow.",
            "short",
            (Query(f"sum by (surface) ({of('http_server_active_requests')})", "{{surface}}"),),
        ),
        Panel(
            "Connections",
            "Open sockets of clients, by state. [limits] connections bounds them.",
            "short", (Query(f"sum by (state) ({of('http_server_connections')})", "{{state}}"),),
        ),
        Panel(
            "Routes",
            "Requests of each route within the time range of this page, and how many ended with a "
            "client's and with a server's error.",
            "none",
            (
                Query(ASKED),
                Query(f"{increase(REQUESTS, REFUSED, ROUTE)}\nor 0 * {ASKED}"),
                Query(f"{increase(REQUESTS, f'{PUBLIC},{FAILED}', ROUTE)}\nor 0 * {ASKED}"),
            ),
            "table", 24, 10,
            columns=(Column("surface", "surface"), Column("method", "method"),
                     Column("route", "route"), Column("A", "requests"), Column("B", "4xx"),
                     Column("C", "5xx")),
            sort="requests", decimals=0,
        ),
    ),
)  # fmt: skip

GUARDS = Row(
    "Refusals and credentials",
    (
        Panel(
            "Refused requests",
            "Requests per second that a guard refused: credentials, rights, rate, size, slowness, "
            "form, CSRF.",
            "reqps", (Query(rate("http_requests_rejected_total", by="reason"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "Credentials checked",
            "API keys, tokens, passwords and sessions judged per second. Many bad or throttled "
            "ones are somebody who guesses.",
            "ops",
            (Query(rate("auth_attempts_total", by="scheme, outcome"), "{{scheme}} {{outcome}}"),),
            alert="AuthBruteForce",
        ),
        Panel(
            "Password hashes under way",
            "Hashes that run or wait for a thread, per node. A queue makes sign-in slow.",
            "short", (Query(of("password_hash_queue"), "{{instance}}"),),
        ),
        Panel(
            "Cost of a password hash",
            "Time of a hash, waiting for a thread included.",
            "s", quantiles("password_hash_duration_seconds"), width=6,
        ),
        Panel(
            "GraphQL operations",
            "Operations per second by type and result; rejected_… names the limit that refused the "
            "document.",
            "ops",
            (Query(rate("graphql_operations_total", by="type, outcome"), "{{type}} {{outcome}}"),),
            width=6, stacked=True,
        ),
        Panel(
            "GraphQL operations with errors",
            "Share of operations that did not end well, by type. Wrong input of shoppers counts.",
            "percentunit",
            (Query(ratio(rate("graphql_operations_total", 'outcome!="ok"', "type"),
                         rate("graphql_operations_total", by="type")), "{{type}}"),),
            width=6, top=1,
        ),
        Panel(
            "Mails to customers",
            "Mails per second: sent, put off (tried again later), given up.",
            "ops", (Query(rate("mail_attempts_total", by="result"), "{{result}}"),),
            width=6, alert="MailsFail",
        ),
    ),
)  # fmt: skip

API = Dashboard(
    "api",
    "Carteiro / API",
    "REST, GraphQL and console: rate, errors and duration, routes, refusals and credentials.",
    (SURFACES, GUARDS),
)
