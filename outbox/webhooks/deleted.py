"""What is left to say of a webhook that its owner has deleted."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class DeletedWebhook:
    """A deleted webhook whose deliveries are in the log; `cancelled` of them ended with it.

    The URL is empty for one of which only the log is known.
    """

    id: str
    owner_id: str
    url: str = ""
    description: str | None = None
    deleted_at: int | None = None
    cancelled: int = 0
    state: Literal["deleted"] = "deleted"
