"""The closed lists of words for deliveries and attempts, each written once."""

from typing import Literal

Origin = Literal["event", "replay", "test"]
"""What a delivery was made for."""
State = Literal["delivered", "ready", "exhausted", "gone", "dead"]
"""What an attempt makes of its delivery."""
End = Literal["delivered", "exhausted", "gone", "cancelled", "dead"]
"""How a delivery ends."""
AttemptKind = Literal["first", "retry", "replay", "test"]
"""What metrics call an attempt."""
OutcomeName = Literal[
    "success", "throttled", "http_3xx", "http_4xx", "http_5xx", "timeout", "connect_error",
    "dns_error", "tls_error", "protocol_error", "blocked", "aborted",
]  # fmt: skip
"""How an attempt came out."""
