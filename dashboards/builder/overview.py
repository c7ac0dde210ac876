"""The overview: are the promises kept, does anything need somebody now, and what is going on."""

from __future__ import annotations

from dashboards.builder.dashboard import Dashboard, Row
from dashboards.builder.panels import (
    BLUE,
    PAGE_OF_WEBHOOK,
    Column,
    Panel,
    Query,
    at_least,
    quantiles,
    up_to,
)
from dashboards.builder.promql import (
    INSTALLATION,
    highest,
    of,
    rate,
    whole,
)

# The label application is that of our rules; an alert about an absent series has no job.
FIRING = 'ALERTS{alertstate="firing",application="carteiro",job=~"$job|"}'
UP, MOST_UP = (f"job:carteiro_nodes_up:{figure}{{{INSTALLATION}}}" for figure in ("count", "max1d"))


def _kept(title: str, description: str, bad: str, promised: float, to: str) -> Panel:
    # Orange begins where the budget is spent, red where it is spent twice.
    steps = at_least(round(2 * promised - 1, 6), promised)
    query = Query(f"1 - max ({bad}{{{INSTALLATION}}})")
    return Panel(
        title, description, "percentunit", (query,), "stat", 4, 4, steps, decimals=3, to=to
    )


def _budget(title: str, counted: str, bad: str, promised: float, alert: str) -> Panel:
    share = round(1 - promised, 6)
    return Panel(
        title,
        f"What is left of the {share:.1%} of {counted} that may miss the promise in 30 days. Below "
        "0 it is broken: changes that are not urgent wait.",
        "percentunit", (Query(f"1 - max ({bad}{{{INSTALLATION}}}) / {share}"),), "stat", 4, 4,
        at_least(0, 0.25), decimals=0, alert=alert,
    )  # fmt: skip


LATE, FAILED, SLOW = (
    "job:outbox_lag_bad:ratio_rate30d",
    "surface:http_requests_bad:ratio_rate30d",
    "surface:http_requests_slow:ratio_rate30d",
)
PROMISES = Row(
    "Promises, over 30 days",
    (
        _kept(
            "First attempts in time",
            "Share of first attempts that started within 5 s of being due. The promise is 99.9 %.",
            LATE, 0.999, "carteiro-delivery",
        ),
        _budget("Budget: late attempts", "first attempts", LATE, 0.999, "OutboxLagBudgetFast"),
        _kept(
            "Requests without server error",
            "Share of requests without a 5xx response, of the surface that has most of them. The "
            "promise is 99.9 %.",
            FAILED, 0.999, "carteiro-api",
        ),
        _budget("Budget: server errors", "requests", FAILED, 0.999, "ApiErrorBudgetFast"),
        _kept(
            "Responses within 250 ms",
            "Share of REST or GraphQL requests, whichever is slower, with a response within "
            "250 ms. The promise is 99 %.",
            SLOW, 0.99, "carteiro-api",
        ),
        _budget("Budget: slow responses", "requests", SLOW, 0.99, "ApiLatencyBudget"),
        Panel(
            "Budget burnt by late attempts",
            "Share of late first attempts by the budget of 0.1 %: at 1 it lasts 30 days, at 6 it "
            "lasts five, at 14.4 two.",
            "short",
            (
                Query(f"job:outbox_lag_bad:ratio_rate5m{{{INSTALLATION}}} / 0.001", "5 minutes"),
                Query(f"job:outbox_lag_bad:ratio_rate1h{{{INSTALLATION}}} / 0.001", "1 hour"),
            ),
            height=7, steps=up_to(6, 14.4), lines=True, alert="OutboxLagBudgetFast",
        ),
        Panel(
            "Budget burnt by server errors",
            "Share of 5xx responses by the budget of 0.1 %, in the last hour, by surface.",
            "short",
            (Query(f"surface:http_requests_bad:ratio_rate1h{{{INSTALLATION}}} / 0.001",
                   "{{surface}}"),),
            height=7, steps=up_to(6, 14.4), lines=True, alert="ApiErrorBudgetFast",
        ),
        Panel(
            "Budget burnt by slow responses",
            "Share of responses after 250 ms by the budget of 1 %, in the last hour, by surface.",
            "short",
            (Query(f"surface:http_requests_slow:ratio_rate1h{{{INSTALLATION}}} / 0.01",
                   "{{surface}}"),),
            height=7, steps=up_to(6, 14.4), lines=True, alert="ApiLatencyBudget",
        ),
    ),
)  # fmt: skip

NOW = Row(
    "Now",
    (
        Panel(
            "Firing alerts",
            "Alerts of Carteiro's rules that fire now; the table below names them.",
            "short", (Query(f"count({FIRING}) or vector(0)"),), "stat", 4, 4, up_to(1, 5),
        ),
        Panel(
            "Oldest due delivery",
            "Age of the oldest delivery that is due and that no worker has taken. It grows when "
            "delivery stalls. Deliveries that wait for a failing receiver do not count.",
            "s", (Query(highest("outbox_oldest_ready_age_seconds")),), "stat", 4, 4, up_to(5, 60),
            to="carteiro-delivery", alert="OutboxStalled",
        ),
        Panel(
            "Since a worker's last turn",
            "Seconds since the worker of a node last went round, by the node's own clock: the "
            "three nodes with most. Below 5 is normal; above 30 the node sends nothing.",
            "s",
            (Query(f"topk(3, instance:outbox_tick_age_seconds:now{{{INSTALLATION}}})",
                   "{{instance}}"),),
            "stat", 4, 4, up_to(10, 30), decimals=1, empty="no worker",
            to="carteiro-delivery", alert="OutboxSchedulerDead",
        ),
        Panel(
            "Deliveries to do",
            "Deliveries that are due, on their way or scheduled for a retry. Parked deliveries of "
            "paused and disabled webhooks are not included.",
            "short", (Query(whole("outbox_deliveries", 'state!="parked"', each="state")),),
            "stat", 4, 4, to="carteiro-delivery",
        ),
        Panel(
            "Accepted at first attempt",
            "Share of first attempts with a 2xx response in the last five minutes. Failures "
            "are those of receivers; when many webhooks fail at once, look at our network.",
            "percentunit",
            (Query(f"1 - max (job:webhook_attempts_failed:ratio_rate5m{{{INSTALLATION}}})"),),
            "stat", 4, 4, at_least(0.5, 0.9), decimals=1, empty="no attempt",
            to="carteiro-webhooks",
            alert="WebhookMassFailure",
        ),
        Panel(
            "Nodes",
            "Nodes that Prometheus can scrape, and how many fewer than the most of the last day. "
            "One that is missing is down, refuses the address of Prometheus ([metrics] allow), "
            "or was removed.",
            "short",
            (Query(f"sum({UP} or 0 * {MOST_UP})", "up"),
             Query(f"sum({MOST_UP} - ({UP} or 0 * {MOST_UP}))", "missing")),
            "stat", 4, 4, up_to(1, 1), empty="none", colours={"up": BLUE},
            to="carteiro-runtime", alert="TargetDown",
        ),
    ),
)  # fmt: skip

TRAFFIC = Row(
    "Traffic",
    (
        Panel(
            "Events in, deliveries out",
            "Events written, deliveries made of them, and deliveries that ended, per second. Ends "
            "below creations for long means that a backlog grows.",
            "ops",
            (
                Query(rate("outbox_events_total"), "events written"),
                Query(rate("outbox_deliveries_created_total"), "deliveries created"),
                Query(rate("webhook_deliveries_finished_total"), "deliveries ended"),
            ),
            to="carteiro-delivery",
        ),
        Panel(
            "Commit to acceptance",
            "Time from the commit of an event to the receiver's 2xx, retries included.",
            "s",
            quantiles("webhook_delivery_latency_seconds"), to="carteiro-delivery",
        ),
        Panel(
            "Requests",
            "Requests answered per second, by surface. Probes include Prometheus itself.",
            "reqps",
            (Query(rate("http_server_requests_total", by="surface"), "{{surface}}"),),
            stacked=True, to="carteiro-api",
        ),
        Panel(
            "Alerts that fire",
            "Name, severity and labels of each firing alert. Its section of the runbook says what "
            "it means, where to look, what to do and when it is over.",
            "short",
            (Query(f"sum by (alertname, severity, instance, webhook, owner) ({FIRING})"),),
            "table", 12, 7, empty="no alert fires",
            columns=(Column("alertname", "alert"), Column("severity", "severity"),
                     Column("instance", "node"),
                     Column("webhook", "webhook", to=PAGE_OF_WEBHOOK), Column("owner", "owner")),
        ),
        Panel(
            "Builds",
            "Version, commit, Python, SQLite library and database of each node. Two versions at "
            "once are normal only during an upgrade.",
            "short", (Query(of("app_build_info")),), "table", 12, 7,
            columns=(Column("instance", "node"), Column("version", "version"),
                     Column("revision", "commit"),
                     Column("backend", "database"), Column("python", "Python"),
                     Column("sqlite", "SQLite")),
        ),
    ),
)  # fmt: skip

OVERVIEW = Dashboard(
    "overview",
    "Carteiro / Overview",
    "Promises kept, what needs attention now, and the traffic. Start here.",
    (PROMISES, NOW, TRAFFIC),
)
