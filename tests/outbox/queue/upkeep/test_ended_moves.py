"""Moves that nobody goes on with are given up."""

from __future__ import annotations

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import ended_moves, owner_moves
from outbox.queue.upkeep.ended_moves import KEPT
from outbox.queue.upkeep.owner_moves import Standing

STORE = "insert into owners (id, state, move_id, peer, changed_at) values ($1, $2, 'm', '', $3)"


async def test_a_move_that_was_left_is_given_up_and_its_notes_go(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        rows = [("closed", "leaving", KEPT + 1)]
        if tx.engine == "postgres":
            # SQLite knows no other moves.
            rows += [("old", "copying", KEPT + 1), ("new", "copying", 0)]
        for owner, state, age in rows:
            await tx.run(STORE, owner, state, tx.now - age)
        for owner in {"old", *(owner for owner, _, _ in rows)}:
            for number in range(3):
                await tx.run(
                    "insert into move_changes (mover, name, key) values ($1, 'contacts', $2)",
                    owner, f"[{number}]",
                )  # fmt: skip
        assert [await ended_moves.purge(tx, 2) for _ in range(3)] == [2, 1, 0]
        left = {owner: len(await owner_moves.changes(tx, owner)) for owner, _, _ in rows}
        assert left == {owner: 0 if owner == "old" else 3 for owner, _, _ in rows}
        assert await owner_moves.standing(tx, "old") == Standing()
        assert (await owner_moves.standing(tx, "closed")).state == "leaving"

    await db.write(unit)


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_the_target_gives_up_who_does_not_arrive(db: Database) -> None:
    arriving = Standing("arriving", "m", "")

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
        assert await owner_moves.standing(tx, "left") == Standing()
        assert (await owner_moves.standing(tx, "gone")).state == "gone"

    await db.write(unit)


@pytest.mark.parametrize("db_url", ["postgres"], indirect=True)
async def test_a_move_that_goes_on_is_not_given_up(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        for owner, state in (("a", "arriving"), ("c", "copying"), ("l", "leaving")):
            await tx.run(STORE, owner, state, tx.now - KEPT - 1)
            await owner_moves.touch(tx, owner)
        assert await ended_moves.old(tx) == {}
        await ended_moves.purge(tx, 1)
        assert (await owner_moves.standing(tx, "c")).state == "copying"
        row = await tx.one("select changed_at from owners where id = 'l'")
        assert row is not None
        assert row["changed_at"] == tx.now - KEPT - 1

    await db.write(unit)
