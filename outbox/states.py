"""The closed lists of words for deliveries, attempts and jobs."""

from typing import Literal

ERASED = "erased with a person's data"
"""What became of an event whose person was erased; it cannot be replayed."""
Origin = Literal["event", "replay", "test"]
"""Why a delivery exists."""
State = Literal["delivered", "ready", "exhausted", "gone", "cancelled", "dead"]
"""How an attempt changes its delivery."""
End = Literal["delivered", "exhausted", "gone", "cancelled", "dead"]
"""The final states of a delivery."""
AttemptKind = Literal["first", "retry", "replay", "test", "probe"]
"""The kinds of attempts in metrics."""
WaitReason = Literal[
    "schedule", "retry_after", "rate_limit", "concurrency_limit", "circuit_open", "paused",
    "disabled", "earlier_delivery", "unreadable",
]  # fmt: skip
"""What an unfinished delivery waits for: its own next attempt; a pause that its receiver asked for;
the owner's limits; a circuit that is open; an activation; an earlier delivery of its record; a
secret that can be decrypted."""
JobKind = Literal["recover", "backfill", "snapshot"]
"""What a job makes: failed deliveries again, events from before its webhook, or an event for each
record as it is."""
JobState = Literal["running", "done", "cancelled", "expired"]
"""The states of a job."""
Change = Literal["open", "closed", "disabled"]
"""What attempts change at their webhook: its circuit, or that it is disabled."""
OutcomeName = Literal[
    "success", "throttled", "http_3xx", "http_4xx", "http_5xx", "timeout", "connect_error",
    "dns_error", "tls_error", "protocol_error", "proxy_error", "token_error",
    "not_permitted", "blocked", "aborted",
]  # fmt: skip
"""The outcome of an attempt."""
NOT_THE_RECEIVER: frozenset[OutcomeName] = frozenset({"proxy_error", "aborted"})
"""Outcomes that say nothing about the receiver: its webhook is not judged by them."""
