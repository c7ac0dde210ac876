"""Replays deliveries that an owner has selected, all of them or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.webhooks import steering
from gateway.records.access import Actor
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from outbox.queue.replays import replay
from outbox.queue.replays.replay import NotReplayable
from outbox.queue.state import lanes

MOST = 200
"""Deliveries in one transaction, which other writes wait for on SQLite."""
UNFINISHED = frozenset({"ready", "in_flight", "held"})


@dataclass(frozen=True, slots=True)
class Selection:
    """What a replay of selected deliveries would send a second time."""

    ids: Sequence[str]
    delivered: int
    """Deliveries that their receivers accepted."""
    waiting: int
    """Deliveries that will be sent anyway."""

    @property
    def question(self) -> str:
        """What the user must confirm; empty when no receiver gets an event twice."""
        return f"{self.delivered}-{self.waiting}" if self.delivered or self.waiting else ""


async def look(tx: Tx, actor: Actor, ids: Sequence[str]) -> Selection:
    """Count what the selection has. Raises validation_error, not_found, forbidden."""
    chosen = list(dict.fromkeys(ids))
    if not chosen:
        raise Refusal("validation_error", "Select at least one delivery.")
    if len(chosen) > MOST:
        raise Refusal("validation_error", f"Select at most {MOST} deliveries at a time.")
    states = [(await steering.own(tx, actor, one)).state for one in chosen]
    return Selection(
        chosen, states.count("delivered"), sum(state in UNFINISHED for state in states)
    )


async def replay_all(
    tx: Tx, actor: Actor, ids: Sequence[str], confirmed: str
) -> tuple[Selection, Sequence[str]]:
    """Replay the selected deliveries, unless it needs a confirmation that is not `confirmed`.

    Return the selection and the new deliveries. Raises validation_error, not_found, forbidden, and
    conflict when one of them cannot be replayed.
    """
    actor.must("write")
    selection = await look(tx, actor, ids)
    if selection.question not in ("", confirmed):
        return selection, ()
    webhooks = {(await steering.own(tx, actor, one)).webhook_id for one in selection.ids}
    # All lanes before the first delivery, in their order: see outbox.queue.state.lanes.
    await lanes.lock(tx, webhooks)
    made = []
    for delivery_id in sorted(selection.ids):
        try:
            made.append(await replay.one(tx, delivery_id, actor.owner_id))
        except NotReplayable as why:
            raise Refusal("conflict", f"{delivery_id}: {why} Nothing was replayed.") from None
    return selection, made
