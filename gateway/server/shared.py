"""What all client connections of a process share: limits, places, and budgets of bytes."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.server.admission import Admission
from gateway.server.budgets import Budget
from gateway.server.config import Limits
from gateway.server.telemetry.instruments import Reason


@dataclass(frozen=True, slots=True)
class Shared:
    """What all connections of a process share."""

    limits: Limits
    admission: Admission
    requests: Budget
    """Bytes of requests that are not answered yet, by address."""
    answers: Budget
    """Bytes of answers that are not sent yet, by account."""
    refused: Callable[[Reason], None]
