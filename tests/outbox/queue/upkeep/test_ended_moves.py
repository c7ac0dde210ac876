"""Moves that nobody goes on with are given up."""

from __future__ import annotations

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import ended_moves, owner_moves
from outbox.queue.upkeep.ended_moves import KEPT
from outbox.queue.upkeep.owner_moves import MoveState

STORE = "insert into owners (id, state, move_id, peer, changed_at) values ($1, $2, 'm', '', $3)"


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_the_target_gives_up_who_does_not_arrive(db: Database) -> None:
    arriving = MoveState("arriving", "m", "")

    async def unit(tx: Tx) -> None:
        for owner, state, age in (
            ("slow", "arriving", KEPT - 1), ("left", "arriving", KEPT + 1),
            ("gone", "gone", KEPT + 1), ("closed", "leaving", KEPT + 1), ("here", "here", KEPT + 1),
        ):  # fmt: skip
            await tx.run(STORE, owner, state, tx.now - age)
        owners = {"gone": "gone", "left": "arriving"}
        assert await ended_moves.old(tx) == owners
        everybody = ["closed", "gone", "here", "left", "nobody", "slow"]
        assert await ended_moves.moving(tx, everybody) == {"closed", "left", "slow"}
        assert [await ended_moves.take(tx, one) for one in everybody] == [
            None, "m", None, "ended.m", None, None,
        ]  # fmt: skip
        left = await owner_moves.standing(tx, "left")
        assert ended_moves.is_given_up(left)
        assert left != arriving
        assert await owner_moves.standing(tx, "slow") == arriving
        # Again, although it has just changed.
        assert await ended_moves.old(tx) == owners
        assert await ended_moves.take(tx, "left") == "ended.m"
        assert await owner_moves.standing(tx, "left") == left
        for owner in ("left", "gone"):
            await ended_moves.forget(tx, owner)
        assert await owner_moves.standing(tx, "left") == MoveState()
        assert (await owner_moves.standing(tx, "gone")).state == "gone"

    await db.write(unit)
