"""What the rows of a queue become in another database."""

from array import array
from typing import Any

from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.moved_owners import homes
from outbox.queue.upkeep.owner_moves import MoveState, Renumbering

NUMBERS = array("q", [100, 101, 102, 103])
ON_THE_WAY = Renumbering(array("q", [10, 12, 20]), NUMBERS, due=7_000, ahead=500)


def changed(table: str, **row: Any) -> dict[str, Any]:
    ON_THE_WAY.change(table, row)
    return row


def test_numbers_keep_their_order_and_have_no_holes() -> None:
    seqs = [0, 10, 11, 12, 19, 20, 99]
    assert [ON_THE_WAY.seq(one) for one in seqs] == [100, 101, 101, 102, 102, 103, 103]
    assert changed("events", seq=12) == {"seq": 102}
    assert changed("forgotten", seq=11) == {"seq": 101}
    assert changed("erasures", seq=20) == {"seq": 103}
    assert changed("jobs", kind="recover", place=10, last_seq=20) == {
        "kind": "recover", "place": 101, "last_seq": 103,
    }  # fmt: skip
    # Of a snapshot the place is that of a name.
    assert changed("jobs", kind="snapshot", place=2, last_seq=12)["place"] == 2
    assert changed("contacts", seq=12) == {"seq": 12}


async def test_who_is_elsewhere(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        assert await owner_moves.closed_owners(tx) == {}
        leaving, gone = MoveState("leaving", "m", "there"), MoveState("gone", "m", "there")
        for owner, at in (("a", MoveState("here", "m", "there")), ("b", leaving), ("c", gone)):
            await owner_moves.stand(tx, owner, at)
        assert await owner_moves.standing(tx, "b") == leaving
        assert await owner_moves.closed_owners(tx) == {"b": leaving, "c": gone}
        assert owner_moves.unreadable_owners(await owner_moves.closed_owners(tx)) == {
            "b": leaving,
            "c": gone,
        }
        arriving = MoveState("arriving", "m", "there")
        assert owner_moves.unreadable_owners({"a": MoveState("resting"), "b": arriving}) == {
            "b": arriving
        }
        assert homes({"b": leaving, "c": gone}, {"there": "https://t"}) == {
            "b": None, "c": ("there", "https://t"),
        }  # fmt: skip
        assert homes({"c": gone}, {}) == {"c": None}
        await owner_moves.cancel_move(tx, "b")
        assert await owner_moves.closed_owners(tx) == {"c": gone}
        assert await owner_moves.standing(tx, "b") == MoveState()

    await db.write(unit)
