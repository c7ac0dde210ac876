"""The delivery: backlog, our delay, attempts, the worker, connections."""

from __future__ import annotations

from dashboards.builder.dashboard import Dashboard, Row
from dashboards.builder.panels import GREEN, RED, Panel, Query, quantiles, up_to
from dashboards.builder.promql import highest, increase, of, quantile, rate, ratio, whole

LAG = "outbox_attempt_lag_seconds"
BLOCKED = rate("webhook_attempts_total", 'outcome="blocked"')


BACKLOG = Row(
    "Backlog",
    (
        Panel(
            "Deliveries by state",
            "Ready: due and not taken. Scheduled: waits for a retry. In flight: taken by a worker. "
            "Held: behind an earlier delivery of its record. Parked: of a paused or disabled "
            "webhook. The leader counts; a million rows take minutes.",
            "short", (Query(whole("outbox_deliveries", by="state"), "{{state}}"),), stacked=True,
            width=12,
        ),
        Panel(
            "Age of the oldest due delivery",
            "The figure that grows when delivery stalls, whatever the reason. Above 60 s for two "
            "minutes somebody is called.",
            "s", (Query(highest("outbox_oldest_ready_age_seconds"), "oldest"),),
            width=12, steps=up_to(5, 60), lines=True, alert="OutboxStalled",
        ),
        Panel(
            "Behind",
            "First attempts that are due where the oldest could have been sent a minute ago, "
            "without an open circuit: of the owner with most, and of the rest. Somebody is called "
            "when the rest, of three owners in all, grows for 15 minutes.",
            "short",
            (Query(whole("outbox_backlog_deliveries", by="part"), "{{part}}"),
             Query(whole("outbox_backlog_webhooks"), "webhooks"),
             Query(whole("outbox_backlog_owners", by="late"), "owners, late by {{late}}")),
            width=12, alert="OutboxBacklog",
        ),
        Panel(
            "Created and ended",
            "Deliveries made by fan-out and deliveries that reached an end, per second. The "
            "backlog grows while the first is above the second. What the conditions of webhooks "
            "leave out makes no delivery.",
            "ops",
            (
                Query(rate("outbox_deliveries_created_total"), "created"),
                Query(rate("outbox_deliveries_left_out_total"), "left out"),
                Query(rate("webhook_deliveries_finished_total"), "ended"),
            ),
            width=12,
        ),
        Panel(
            "Events written",
            "Events per second, by type. Each is stored in the transaction of its change.",
            "ops", (Query(rate("outbox_events_total", by="event_type"), "{{event_type}}"),),
            width=12, stacked=True,
        ),
        Panel(
            "Deliveries created",
            "Deliveries made by fan-out per second, by type of event: one for each webhook that "
            "subscribes to it.",
            "ops",
            (Query(rate("outbox_deliveries_created_total", by="event_type"), "{{event_type}}"),),
            width=12, stacked=True,
        ),
    ),
)  # fmt: skip

DELAY = Row(
    "Our delay, and the time until acceptance",
    (
        Panel(
            "Start of first attempts",
            "Time from due to the request of first attempts: our part of the time. The promise is "
            "5 s for 99.9 %.",
            "s", quantiles(LAG, 'attempt="first"'), steps=up_to(1, 5), lines=True,
            alert="OutboxLagBudgetFast",
        ),
        Panel(
            "Start of first attempts, distribution",
            "How many first attempts started after which time, per second.",
            "s",
            (Query(rate(f"{LAG}_bucket", 'attempt="first"', "le"), "{{le}}"),), "heatmap",
        ),
        Panel(
            "Start of other attempts",
            "95th percentile of the time from due to the request. Retries give way to first "
            "attempts, so they are later when slots are scarce; limited ones go to webhooks that "
            "fail, one at a time.",
            "s", (Query(quantile(0.95, LAG, 'attempt!="first"', "attempt"), "{{attempt}}"),),
            alert="OutboxSlotsSaturated",
        ),
        Panel(
            "Commit to acceptance",
            "Time from the commit of an event to the receiver's 2xx, retries included. Receivers "
            "that fail for hours make this long.",
            "s", quantiles("webhook_delivery_latency_seconds"), width=12,
        ),
        Panel(
            "Commit to acceptance, distribution",
            "How many deliveries were accepted after which time, per second.",
            "s",
            (Query(rate("webhook_delivery_latency_seconds_bucket", by="le"), "{{le}}"),),
            "heatmap", 12,
        ),
    ),
)  # fmt: skip

ATTEMPTS = Row(
    "Attempts",
    (
        Panel(
            "Attempts by outcome",
            "Requests to webhooks per second, by result. connect_error, dns_error and tls_error of "
            "many webhooks at once point to our own network; proxy_error to an egress proxy.",
            "reqps", (Query(rate("webhook_attempts_total", by="outcome"), "{{outcome}}"),),
            stacked=True, colours={"success": GREEN}, alert="WebhookMassFailure",
        ),
        Panel(
            "Attempts by kind",
            "Requests per second: first attempts, retries, replays that somebody asked for, tests, "
            "and probes of webhooks whose circuit is open.",
            "reqps", (Query(rate("webhook_attempts_total", by="attempt"), "{{attempt}}"),),
            stacked=True,
        ),
        Panel(
            "Successful attempts",
            "Share of attempts with a 2xx response, by kind.",
            "percentunit",
            (Query(ratio(rate("webhook_attempts_total", 'outcome="success"', "attempt"),
                         rate("webhook_attempts_total", by="attempt")), "{{attempt}}"),),
            top=1,
        ),
        Panel(
            "Deliveries that ended",
            "Ends per second: delivered, exhausted (no retry left), gone (the receiver answered "
            "410), cancelled, dead (could not be sent at all).",
            "ops", (Query(rate("webhook_deliveries_finished_total", by="result"), "{{result}}"),),
            stacked=True, colours={"delivered": GREEN, "exhausted": RED}, alert="WebhookExhausted",
        ),
        Panel(
            "Duration of requests",
            "95th percentile of the time of a request, for answers with 2xx and for all others. "
            "A failure at exactly the timeout is a receiver that hangs.",
            "s",
            (Query(quantile(0.95, "webhook_attempt_duration_seconds", by="result"),
                   "{{result}}"),),
        ),
        Panel(
            "Blocked targets",
            "Attempts per second that the guard refused because the address is not allowed. Many "
            "of them may be somebody who tries to reach internal services.",
            "reqps", (Query(f"{BLOCKED} or vector(0)", "blocked"),),
            alert="WebhookBlockedTargets",
        ),
    ),
)  # fmt: skip

WORKER = Row(
    "Worker",
    (
        Panel(
            "Slots",
            "Requests under way and the most that may be, per node. When all slots are busy for "
            "long, look for slow receivers, then raise [delivery] slots.",
            "short",
            (
                Query(of("outbox_slots_busy"), "{{instance}} busy"),
                Query(of("outbox_slots"), "{{instance}} slots"),
            ),
            alert="OutboxSlotsSaturated",
        ),
        Panel(
            "Claims",
            "Searches for due deliveries per second: found rows, found none, failed.",
            "ops", (Query(rate("outbox_claims_total", by="result"), "{{result}}"),),
            colours={"error": RED},
        ),
        Panel(
            "Duration of claims",
            "Time of a claim. It rises with a slow disk or a busy database.",
            "s", quantiles("outbox_claim_duration_seconds"),
        ),
        Panel(
            "Deliveries taken back",
            "Deliveries per second taken back from a lost claim: at startup, from a node whose "
            "lease ended, or lost in a failover. They are sent again with the same id.",
            "ops", (Query(rate("outbox_rescued_total", by="reason"), "{{reason}}"),),
            alert="OutboxRescues",
        ),
        Panel(
            "Results that came late",
            "Refused: the claim was lost before the result could be stored, so the attempt may be "
            "repeated. Put off: somebody held the lane for a moment, which is harmless.",
            "ops",
            (
                Query(rate("outbox_fenced_acks_total"), "refused"),
                Query(rate("outbox_deferred_settles_total"), "put off"),
            ),
            colours={"refused": RED}, alert="OutboxFencedAcks",
        ),
        Panel(
            "Faults and cuts",
            "Turns of the worker that a fault of ours ended, and slow requests cut because too "
            "many were open.",
            "ops",
            (
                Query(rate("outbox_drain_faults_total"), "faults"),
                Query(rate("outbox_slow_sends_cut_total"), "slow requests cut"),
            ),
            colours={"faults": RED},
        ),
        Panel(
            "Since the last turn",
            "Seconds since each node's worker last went round. Above 30 s on all nodes nothing is "
            "sent.",
            "s",
            (Query(f"time() - ({of('outbox_scheduler_last_tick_timestamp_seconds')} > 0)",
                   "{{instance}}"),),
            steps=up_to(10, 30), lines=True, alert="OutboxSchedulerDead",
        ),
        Panel(
            "Webhooks by condition",
            "Webhooks by state and circuit. The leader counts them.",
            "short",
            (Query(whole("webhook_endpoints", by="state, circuit"), "{{state}}, {{circuit}}"),),
            stacked=True, to="carteiro-webhooks", alert="WebhookCircuitsOpen",
        ),
        Panel(
            "Circuits that open and close",
            "Webhooks per second whose circuit opened or closed, or that were disabled, with the "
            "outcome that decided it.",
            "ops",
            (Query(rate("webhook_circuit_transitions_total", by="to, reason"),
                   "{{to}}, {{reason}}"),),
            stacked=True, to="carteiro-webhooks",
        ),
    ),
)  # fmt: skip

CONNECTIONS = Row(
    "Connections",
    (
        Panel(
            "New and reused connections",
            "Connections used for requests, per second. Few reused ones mean more handshakes and "
            "slower deliveries.",
            "ops", (Query(rate("webhook_connections_total", by="reused"), "reused: {{reused}}"),),
            width=12, stacked=True,
        ),
        Panel(
            "Odd responses",
            "Responses per second that were longer than the part that is kept, and redirects, "
            "which are never followed: their owners should correct the URL.",
            "ops",
            (
                Query(rate("webhook_response_truncated_total"), "cut off"),
                Query(rate("webhook_redirects_refused_total"), "redirects"),
            ),
            width=12,
        ),
    ),
)  # fmt: skip

JOBS = Row(
    "Recover and backfill",
    (
        Panel(
            "Replays of jobs",
            "Deliveries per second that jobs make: recover sends again what failed, backfill sends "
            "a webhook events from before it existed. Each job has a rate of its own.",
            "ops", (Query(rate("webhook_job_deliveries_total", by="kind"), "{{kind}}"),),
            width=12, stacked=True,
        ),
        Panel(
            "Jobs that ended",
            "Jobs that are done or were cancelled, counted over as long a time as is shown.",
            "short",
            (Query(increase("webhook_jobs_ended_total", by="kind, result"),
                   "{{kind}}, {{result}}"),),
            width=12,
        ),
    ),
)  # fmt: skip

DELIVERY = Dashboard(
    "delivery",
    "Carteiro / Delivery",
    "From event to acceptance: backlog, our delay, attempts, worker and connections.",
    (BACKLOG, DELAY, ATTEMPTS, WORKER, CONNECTIONS, JOBS),
)
