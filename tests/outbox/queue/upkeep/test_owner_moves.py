"""What the rows of a queue become in another database."""

from array import array
from typing import Any

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.deliveries import Capacity
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.moved_owners import homes
from outbox.queue.upkeep.owner_moves import FAR, Passage, Standing
from tests.support.drain import OWNER, add_webhook, make, ring

DELIVERY = "select next_at from deliveries where webhook_id = $1 and state = 'ready'"
NUMBERS = array("q", [100, 101, 102, 103])
ON_THE_WAY = Passage(array("q", [10, 12, 20]), NUMBERS, due=7_000, ahead=500)


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


def test_times_follow_the_due_clock() -> None:
    lane = changed(
        "lanes", due_at=1 + FAR, wait_until=FAR, turned_at=40, probe_at=50, failing_from=None
    )
    assert lane == {
        "due_at": None, "wait_until": 0, "turned_at": 540, "probe_at": 550, "failing_from": None,
    }  # fmt: skip
    asked = changed("lanes", due_at=None, wait_until=FAR + 9, turned_at=0, probe_at=None,
                    failing_from=3)  # fmt: skip
    assert (asked["wait_until"], asked["turned_at"], asked["failing_from"]) == (509, 0, 503)
    ready = changed("deliveries", state="ready", seq=10, next_at=30)
    assert ready == {"state": "ready", "seq": 101, "next_at": 530}


def test_a_claim_ends() -> None:
    taken = changed(
        "deliveries", state="in_flight", seq=10, next_at=30, retry=False, claim="c", node_id="n"
    )
    assert taken == {
        "state": "ready", "seq": 101, "next_at": 7_000, "retry": True, "claim": None,
        "node_id": None,
    }  # fmt: skip


def test_a_webhook_gets_all_that_comes() -> None:
    assert changed("webhooks", since_pos=9, since_snapshot="1:2:") == {
        "since_pos": 0, "since_snapshot": None,
    }  # fmt: skip


async def test_who_is_elsewhere(db: Database) -> None:
    async def unit(tx: Tx) -> None:
        assert await owner_moves.elsewhere(tx) == {}
        leaving, gone = Standing("leaving", "m", "there"), Standing("gone", "m", "there")
        for owner, at in (("a", Standing("here", "m", "there")), ("b", leaving), ("c", gone)):
            await owner_moves.stand(tx, owner, at)
        assert await owner_moves.standing(tx, "b") == leaving
        assert await owner_moves.elsewhere(tx) == {"b": leaving, "c": gone}
        assert owner_moves.absent(await owner_moves.elsewhere(tx)) == {"b": leaving, "c": gone}
        arriving = Standing("arriving", "m", "there")
        assert owner_moves.absent({"a": Standing("resting"), "b": arriving}) == {"b": arriving}
        assert homes({"b": leaving, "c": gone}, {"there": "https://t"}) == {
            "b": None, "c": ("there", "https://t"),
        }  # fmt: skip
        assert homes({"c": gone}, {}) == {"c": None}
        await owner_moves.stay(tx, "b")
        assert await owner_moves.elsewhere(tx) == {"c": gone}
        assert await owner_moves.standing(tx, "b") == Standing()

    await db.write(unit)


async def test_what_was_copied_goes_on(db: Database) -> None:
    webhook, _ = await add_webhook(db, ring(), "http://127.0.0.1:1/")

    async def unit(tx: Tx) -> None:
        await make(tx, "r")
        await fan_out(tx, Capacity("", "", 0, 0, 0, {}, 0))
        await tx.run("update lanes set due_at = null")
        await tx.run(
            "insert into erasures (id, owner_id, record_ids, kept_names, upto_pos, seq, created_at)"
            " values ('e', $1, '[]', '[]', 0, 0, 0)", OWNER,
        )  # fmt: skip
        await owner_moves.settled_here(tx, OWNER)
        erasure = await tx.one("select upto_pos from erasures")
        event = await tx.one("select pos from events")
        lane = await tx.one("select due_at from lanes")
        delivery = await tx.one(DELIVERY, webhook)
        assert erasure is not None
        assert event is not None
        assert lane is not None
        assert delivery is not None
        assert erasure["upto_pos"] == event["pos"]
        assert lane["due_at"] == delivery["next_at"]

    await db.write(unit)
