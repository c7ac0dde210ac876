"""A move that was given up meanwhile does not close its owner: its notes may be gone."""

import pytest

from gateway.cli.moving.live_move import _rest
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import Standing


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_given_up_move_closes_nobody(db: Database) -> None:
    resting = Standing("resting", "m", "there")
    with pytest.raises(CannotStart, match="given up"):
        await db.write(_rest, "o", resting)
    await db.write(owner_moves.stand, "o", Standing("copying", "another", "there"))
    with pytest.raises(CannotStart, match="given up"):
        await db.write(_rest, "o", resting)
    await db.write(owner_moves.stand, "o", Standing("copying", "m", "there"))
    await db.write(_rest, "o", resting)
    assert await db.read(owner_moves.standing, "o") == resting
