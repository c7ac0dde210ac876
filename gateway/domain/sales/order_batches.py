"""Cancels many orders at once, each in a transaction of its own.

So no transaction locks the products of several orders, and a refused one holds up no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.sales import order_verbs
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Draft
from gateway.records.resource import Field, Form
from gateway.records.values import formats
from outbox.database.transaction import Database

MOST = 100
SELECTION = Form(
    noun="order selection",
    description="Orders to cancel.",
    fields=(
        Field(
            "ids", "ids", formats.ids_of("order", MOST), f"The orders, at most {MOST}.",
            ["018f3a5b7c9d1e2f3a4b5c77"], required=True,
        ),
        Field(
            "reason", "reason", formats.text(formats.LONG), "Reason for cancellation.",
            "Never paid",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Canceled:
    """The outcome of each order."""

    done: Sequence[str]
    """The ids of the orders that are canceled now."""
    refused: Sequence[tuple[str, Refusal]]
    """The other ids with the reasons."""


async def cancel_all(
    db: Database, actor: Actor, ids: Sequence[str], reason: str | None
) -> Canceled:
    """Cancel the orders with these ids; see order_verbs.cancel. Raises forbidden."""
    actor.must("write")
    done: list[str] = []
    refused: list[tuple[str, Refusal]] = []
    for order_id in dict.fromkeys(ids):
        draft = Draft(values={} if reason is None else {"reason": reason})
        try:
            await db.write(order_verbs.cancel, actor, order_id, draft)
        except Refusal as refusal:
            refused.append((order_id, refusal))
        else:
            done.append(order_id)
    return Canceled(done, refused)
