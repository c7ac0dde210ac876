"""Opens the deal of an order, and closes it when the order ends."""

from collections.abc import Mapping
from typing import Any

from gateway.domain.sales.deals import DEALS, closing, too_many_stages
from gateway.records import actions, store
from gateway.records.access import Actor
from gateway.records.record import Record, record_of
from gateway.records.values.strictjson import dumps
from outbox.database.transaction import Tx

STAGE = "checkout"


async def begin(tx: Tx, actor: Actor, *, title: str, value: int, contact_id: str) -> Record:
    """Create an open deal in the stage STAGE; values are checked already. Emits deal.created.

    The stage may be outside a strict pipeline. An owner whose deals are in as many stages as
    possible gets the deal without a stage.
    """
    full = bool(await too_many_stages(tx, actor, STAGE))
    values = {
        "title": title, "value": value, "currency": "BRL", "status": "open",
        "stage": None if full else STAGE, "contact_ids": dumps([contact_id]),
    }  # fmt: skip
    return actions.announce(tx, "created", await actions.insert(tx, actor, DEALS, values))


async def win(tx: Tx, actor: Actor, deal_id: str | None) -> None:
    """Mark the deal of a paid order as won, if it still exists; emits deal.updated."""
    deal = await _locked(tx, actor, deal_id)
    if deal is not None:
        await _change(tx, actor, deal, {"status": "won", "probability": 100})


async def lose(tx: Tx, actor: Actor, deal_id: str | None, reason: str) -> None:
    """Mark the deal of an unpaid order as lost, if it is still open; emits deal.updated."""
    deal = await _locked(tx, actor, deal_id)
    if deal is not None and deal["status"] == "open":
        await _change(tx, actor, deal, {"status": "lost", "lost_reason": reason})


async def _locked(tx: Tx, actor: Actor, deal_id: str | None) -> Record | None:
    row = None if deal_id is None else await store.fetch(tx, DEALS, deal_id, lock=True)
    return None if row is None else record_of(DEALS, row, tx.now, actor.zone)


async def _change(tx: Tx, actor: Actor, deal: Record, values: Mapping[str, Any]) -> None:
    changes = actions.changes_of(deal, values)
    if changes:
        changes = closing(deal, changes, tx.now) | changes
        actions.announce(tx, "updated", await actions.update(tx, actor, deal, changes))
