"""The state that all client connections of a process share: limits, places, byte budgets."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.server.config import Limits
from gateway.server.http.admission import Admission
from gateway.server.http.budgets import Budget
from gateway.server.telemetry.instruments import Reason


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared state of all connections of a process."""

    limits: Limits
    admission: Admission
    requests: Budget
    """Bytes of requests without a response yet, by address."""
    answers: Budget
    """Bytes of unsent responses, by account."""
    refused: Callable[[Reason], None]
