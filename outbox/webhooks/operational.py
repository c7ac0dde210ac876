"""The events of operational webhooks: what an account is told about its other webhooks, and data.

They are no events of records: no record has them, and the events feed leaves them out.
"""

from collections.abc import Collection
from typing import Literal, get_args

Name = Literal[
    "endpoint.failing", "endpoint.disabled", "endpoint.recovered", "delivery.exhausted",
    "person.erased",
]  # fmt: skip
NAMES: tuple[Name, ...] = get_args(Name)
MOST = 5
"""Operational webhooks of one owner: each of them multiplies the events."""


def is_operational(events: Collection[str]) -> bool:
    """Return whether a subscription is that of an operational webhook."""
    return bool(events) and set(events) <= set(NAMES)
