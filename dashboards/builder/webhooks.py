"""Single webhooks: those that fail first, then the course of the chosen ones."""

from __future__ import annotations

from dashboards.builder.dashboard import Dashboard, Row, Variable
from dashboards.builder.panels import GREEN, PAGE_OF_WEBHOOK, RED, Column, Panel, Query, up_to
from dashboards.builder.promql import INSTALLATION, highest, increase, of, quantile, rate, ratio

CHOSEN = 'webhook=~"$webhook"'
ATTEMPTS = "webhook_endpoint_attempts_total"
FAILED = f'{CHOSEN},outcome!="success"'
PER = "webhook"

NOW = Row(
    "Webhooks, failing first",
    (
        Panel(
            "Webhooks",
            "Failed attempts within the time range of this page, attempts, what waits now, and how "
            "long the last success is ago. Webhooks beyond [metrics] webhook_series share the line "
            "“other”; the console shows every webhook.",
            "none",
            (
                Query(f"{increase(ATTEMPTS, FAILED, PER)}\n"
                      f"or 0 * {increase(ATTEMPTS, CHOSEN, PER)}"),
                Query(increase(ATTEMPTS, CHOSEN, PER)),
                Query(highest("webhook_endpoint_pending", CHOSEN, PER)),
                Query(highest("webhook_endpoint_oldest_pending_age_seconds", CHOSEN, PER)),
                Query("time() - "
                      + highest("webhook_endpoint_last_success_timestamp_seconds", CHOSEN, PER)),
                Query(highest("webhook_endpoint_up", CHOSEN, PER)),
                Query(highest("webhook_endpoint_info", CHOSEN, "webhook, host")),
            ),
            "table", 24, 10,
            columns=(
                Column("webhook", "webhook", to=PAGE_OF_WEBHOOK), Column("host", "host"),
                Column("A", "failed"),
                Column("B", "attempts"), Column("C", "waiting"),
                Column("D", "oldest waiting", "s"), Column("E", "since last success", "s"),
                Column("F", "up"),
            ),
            sort="failed", decimals=0, empty="no webhook was used",
        ),
        Panel(
            "Webhooks that are behind",
            "Webhooks without an open circuit whose first attempts are a minute late or more, the "
            "oldest 20: they accept deliveries slower than these come.",
            "none",
            (
                Query(f"max by (webhook, owner) (webhook_backlog_deliveries{{{INSTALLATION}}})"),
                Query(f"max by (webhook, owner) (webhook_backlog_age_seconds{{{INSTALLATION}}})"),
            ),
            "table", 12, 8,
            columns=(
                Column("webhook", "webhook", to=PAGE_OF_WEBHOOK), Column("owner", "owner"),
                Column("A", "due"), Column("B", "oldest", "s"),
            ),
            sort="oldest", decimals=0, empty="none is behind", alert="WebhookBacklog",
        ),
        Panel(
            "Owners that are behind",
            "The same by owner: first attempts that are due at the webhooks of an owner that are "
            "behind.",
            "none",
            (
                Query(f"max by (owner) (owner_backlog_deliveries{{{INSTALLATION}}})"),
                Query(f"max by (owner) (owner_backlog_age_seconds{{{INSTALLATION}}})"),
            ),
            "table", 12, 8,
            columns=(
                Column("owner", "owner"), Column("A", "due"), Column("B", "oldest", "s"),
            ),
            sort="oldest", decimals=0, empty="none is behind", alert="OwnerBacklog",
        ),
    ),
)  # fmt: skip

COURSE = Row(
    "Chosen webhooks",
    (
        Panel(
            "Attempts",
            "Requests per second to each webhook.",
            "reqps", (Query(rate(ATTEMPTS, CHOSEN, PER), "{{webhook}}"),),
        ),
        Panel(
            "Failed attempts",
            "Share of requests to each webhook without a 2xx response.",
            "percentunit",
            (Query(ratio(rate(ATTEMPTS, FAILED, PER), rate(ATTEMPTS, CHOSEN, PER)),
                   "{{webhook}}"),),
            top=1, steps=up_to(0.1, 0.5), lines=True,
        ),
        Panel(
            "Outcomes",
            "Requests to the chosen webhooks per second, by result.",
            "reqps", (Query(rate(ATTEMPTS, CHOSEN, "outcome"), "{{outcome}}"),),
            stacked=True, colours={"success": GREEN},
        ),
        Panel(
            "Duration of requests",
            "95th percentile of the time that each webhook takes to answer.",
            "s",
            (Query(quantile(0.95, "webhook_endpoint_duration_seconds", CHOSEN, PER),
                   "{{webhook}}"),),
        ),
        Panel(
            "Waiting deliveries",
            "Deliveries that wait at each webhook, retries of later included.",
            "short", (Query(highest("webhook_endpoint_pending", CHOSEN, PER), "{{webhook}}"),),
        ),
        Panel(
            "Age of the oldest waiting delivery",
            "How long ago the oldest waiting delivery of each webhook was due.",
            "s",
            (Query(highest("webhook_endpoint_oldest_pending_age_seconds", CHOSEN, PER),
                   "{{webhook}}"),),
        ),
        Panel(
            "Deliveries that ended",
            "Ends per second of the deliveries to the chosen webhooks. Exhausted ones can be sent "
            "again from the console.",
            "ops",
            (Query(rate("webhook_endpoint_deliveries_total", CHOSEN, "result"), "{{result}}"),),
            stacked=True, colours={"delivered": GREEN, "exhausted": RED}, alert="WebhookExhausted",
        ),
        Panel(
            "Window",
            "Requests that each webhook may have under way at once. It grows with successes and "
            "shrinks when the webhook fails or says that it is busy.",
            "short", (Query(of("webhook_endpoint_window", CHOSEN), "{{webhook}} {{instance}}"),),
        ),
        Panel(
            "Up",
            "0 from a failed attempt to the next success, and while the webhook is disabled; "
            "else 1.",
            "short", (Query(highest("webhook_endpoint_up", CHOSEN, PER), "{{webhook}}"),), top=1,
        ),
    ),
)  # fmt: skip

WEBHOOKS = Dashboard(
    "webhooks",
    "Carteiro / Webhooks",
    "Single webhooks: which ones fail, how fast they answer, and what waits for them.",
    (NOW, COURSE),
    (
        Variable(
            "host", "Host", 'label_values(webhook_endpoint_info{job=~"$job"}, host)', ".*"
        ),
        Variable(
            "webhook", "Webhook",
            'label_values(webhook_endpoint_info{job=~"$job",host=~"$host"}, webhook)', ".*",
        ),
    ),
)  # fmt: skip
