"""Find an owner in two databases, and how far his move from one to the other is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.cli.moving.moved_rows import QUEUED_MAIL
from gateway.domain.accounts import users
from gateway.domain.product_ownership import OWNERSHIP
from outbox.database.ownership import of_owner
from outbox.database.sql import IDS, items
from outbox.database.transaction import Tx
from outbox.errors import CannotStart
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import NO_ROOM
from outbox.queue.upkeep import ended_moves, owner_moves
from outbox.queue.upkeep.owner_moves import FAR, MoveState

Seen = Callable[[float, str], None]
"""Gets how much is copied, from 0 to 1, and the table that is next."""
_HOLD_MAIL = "update {0} set due_at = due_at + {1} where due_at < {1} and ({2})"
_RELEASE_MAIL = "update {0} set due_at = due_at - {1} where due_at >= {1} and ({2})"
_HOSTS = "select value from store_hosts where {0}"
_TAKEN_HOST = f"select value from store_hosts where value in {IDS} order by value limit 1"


@dataclass(frozen=True, slots=True)
class Found:
    """An owner, and where he is by the source and by the target."""

    owner_id: str
    here: MoveState
    there: MoveState


async def find(tx: Tx, target: Tx, email: str, ends: tuple[str, str]) -> Found:
    """Find the owner, who may be in the target already. Raise CannotStart."""
    user, known = await users.by_email(tx, email), await users.by_email(target, email)
    row = user or known
    if row is None:
        raise CannotStart(f"there is no account {email}")
    owner_id = str(row["id"])
    here = await owner_moves.standing(tx, owner_id)
    there = await owner_moves.standing(target, owner_id)
    if user is None and here.state != "gone":
        raise CannotStart(f"there is no account {email}; the target has one")
    if here.state in ("copying", "resting", "leaving") and here.peer != ends[1]:
        # That database may have him already.
        raise CannotStart(f"the owner is leaving for {here.peer}; name it with --to")
    if here.state == "arriving":
        raise CannotStart(f"the owner is arriving from {here.peer}; end that move first")
    arrives = there.state == "arriving" and there.move_id == here.move_id
    if ended_moves.is_given_up(there):
        raise CannotStart(
            "the target gave this move up and deletes what had arrived; try again in an hour"
        )
    if there.state == "arriving" and not arrives:
        raise CannotStart(f"the owner is arriving there from {there.peer}; end that move first")
    if here.state != "gone" and not has_arrived(here, there) and not arrives:
        if known is not None:
            raise CannotStart(f"the target has an account {email} already")
        await _must_be_free(tx, target, owner_id)
    return Found(owner_id, here, there)


def has_arrived(here: MoveState, there: MoveState) -> bool:
    """Return whether the target has the owner."""
    return bool(here.move_id) and (there.state, there.move_id) == ("here", here.move_id)


async def hold_mail(tx: Tx, owner_id: str) -> None:
    """Let no mail of an owner be due; again changes nothing."""
    await _mail(tx, owner_id, _HOLD_MAIL)


async def release_mail(tx: Tx, owner_id: str) -> None:
    """Undo `hold_mail`."""
    await _mail(tx, owner_id, _RELEASE_MAIL)


async def _mail(tx: Tx, owner_id: str, text: str) -> None:
    for table in QUEUED_MAIL:
        await tx.run(text.format(table, FAR, of_owner(OWNERSHIP, table)), owner_id)


async def _must_be_free(tx: Tx, target: Tx, owner_id: str) -> None:
    """Raise CannotStart when a store of the target has a hostname of the owner."""
    condition = of_owner(OWNERSHIP, "store_hosts")
    hosts = [row["value"] for row in await tx.all(_HOSTS.format(condition), owner_id)]
    taken = await target.one(_TAKEN_HOST, items(hosts))
    if taken is not None:
        raise CannotStart(f"a store of the target has the hostname {taken['value']}")


async def make_deliveries(tx: Tx) -> None:
    """Make deliveries of events that fan-out has not seen, and take its notes about locked lanes.

    Of one round: see owner_moves.is_fanned_out.
    """
    await fan_out(tx, NO_ROOM)
    await lanes.wake_noted(tx)
