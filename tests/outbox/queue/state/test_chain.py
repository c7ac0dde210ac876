"""Each changed byte and each missing row of the delivery log is found, and nothing else."""

from __future__ import annotations

import hashlib
import json

import pytest

from outbox import database
from outbox.database.transaction import Database
from outbox.ids import Ids
from outbox.queue.state import chain
from outbox.queue.state.chain import COVERED, LINK
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState
from outbox.sending.request import new_secret
from outbox.webhooks import secret_rotation
from outbox.webhooks.secrets import KeyRing
from tests.support.chains import delivered, walked
from tests.support.clocks import Wall
from tests.support.drain import drain, inbox, make, ring, rows, run

OTHER: dict[str, object] = {
    "number": 77, "status": 201, "started_at": 5, "dns_us": 5, "connect_us": 5, "tls_us": 5,
    "first_byte_us": 5, "total_us": 5, "place": 10_000, "truncated": True,
    "kind": "test", "response_body": b"x", "body_digest": bytes(32), "digest": bytes(32),
    "answer_digest": bytes(32), "event_digest": bytes(32),
}  # fmt: skip


@pytest.fixture
async def log(db: Database) -> tuple[Database, KeyRing, list[str]]:
    """The log of two webhooks with six deliveries each, some of them with retries."""
    keys, webhooks = await delivered(db, 6, urls=2)
    return db, keys, webhooks


Log = tuple[Database, KeyRing, list[str]]


@pytest.mark.slow
async def test_each_changed_column_is_found(log: Log, db_url: str) -> None:
    db, keys, webhooks = log
    [row] = await db.read(
        rows, "select * from attempts where place = 3 and webhook_id = $1", webhooks[1]
    )
    ours = row["delivery_id"], row["number"]
    for column in (*COVERED, *LINK, "answer_digest"):
        value = OTHER.get(column, "x")
        key = [value if column == name else row[name] for name in ("delivery_id", "number")]
        change = f"update attempts set {column} = $1 where delivery_id = $2 and number = $3"
        assert await db.write(run, change, value, *ours) == 1
        faults = {fault.webhook_id: fault for fault in (await walked(db_url, keys)).faults}
        assert await db.write(run, change, row[column], *key) == 1
        assert faults[webhooks[1]].place == 3, column
        if column not in ("webhook_id", "place"):
            changed = faults[webhooks[1]]
            assert [changed.delivery_id, changed.number] == key, column
        # A row that went to another chain is one too many there.
        assert faults.keys() == {webhooks[1], *({"x"} if column == "webhook_id" else ())}
    assert (await walked(db_url, keys)).faults == []


async def test_a_missing_row_is_found(log: Log, db_url: str) -> None:
    db, keys, webhooks = log
    last = (await walked(db_url, keys)).heads[webhooks[0]][0]
    for place in (last, 3, 1):
        delete = "delete from attempts where webhook_id = $1 and place = $2"
        assert await db.write(run, delete, webhooks[0], place) == 1
        [fault] = (await walked(db_url, keys)).faults
        assert (fault.webhook_id, fault.place, fault.missing) == (webhooks[0], place, True)


async def test_a_log_without_its_end_or_without_rows_is_found(log: Log, db_url: str) -> None:
    db, keys, webhooks = log
    await db.write(run, "delete from attempts where webhook_id = $1", webhooks[0])
    await db.write(run, "update lanes set chain_place = 0 where webhook_id = $1", webhooks[1])
    first, second = sorted((await walked(db_url, keys)).faults, key=lambda f: f.place or 0)
    assert (first.webhook_id, first.place, first.missing) == (webhooks[0], 1, True)
    assert (second.webhook_id, second.missing) == (webhooks[1], True)


@pytest.mark.slow
async def test_a_changed_event_is_found(log: Log, db_url: str) -> None:
    db, keys, webhooks = log
    [row] = await db.read(rows, """
        select e.* from attempts a join events e on e.id = a.event_id
        where a.place = 2 and a.webhook_id = $1""", webhooks[0],
    )  # fmt: skip
    for column, value, what in (
        ("body", b"{}", "body of its event was changed"),
        ("body", None, "body of its event was removed"),
        ("body_digest", "00" * 32, "digest of its event's body was changed"),
    ):
        change = f"update events set {column} = $1 where id = $2"
        assert await db.write(run, change, value, row["id"]) == 1
        faults = (await walked(db_url, keys)).faults
        assert await db.write(run, change, row[column], row["id"]) == 1
        # It has an attempt in the chain of each webhook.
        assert {fault.webhook_id for fault in faults} == set(webhooks)
        assert all(what in fault.what for fault in faults)


async def test_a_chain_computed_again_fails_by_its_signatures(log: Log, db_url: str) -> None:
    """Who can write the log, but has no key, cannot sign another body."""
    db, keys, webhooks = log
    body = b'{"event":"thing.made","timestamp":1,"data":{"id":"forged"}}'
    forged = hashlib.sha256(body)
    await db.write(run, "update events set body = $1, body_digest = $2", body, forged.hexdigest())
    await db.write(run, "update attempts set event_digest = null, state = null")
    for webhook_id in webhooks:
        before, end = b"", (0, "")
        for row in await db.read(
            rows, "select * from attempts where webhook_id = $1 order by place", webhook_id
        ):
            values = [row[name] for name in COVERED]
            values[COVERED.index("truncated")] = bool(row["truncated"])
            answer = chain.answer_of(row["response_headers"], bytes(row["response_body"]))
            before = chain.digest_of(before, values, answer, row["place"], forged.digest())
            end = row["place"], before.hex()
            await db.write(run, """update attempts set digest = $1, body_digest = $2
                where delivery_id = $3 and number = $4""",
                before, forged.digest(), row["delivery_id"], row["number"],
            )  # fmt: skip
        await db.write(run,
            "update lanes set chain_place = $1, chain_digest = $2 where webhook_id = $3",
            *end, webhook_id,
        )  # fmt: skip
    assert (await walked(db_url, None)).faults == []
    faults = (await walked(db_url, keys)).faults
    assert [(fault.place, fault.what) for fault in faults] == [
        (1, "its signature does not match its body")
    ] * 2


async def add(
    db: Database, key: tuple[str, str, str, int], at: int, place: int | None = None
) -> None:
    """Add an attempt to the log; its key: owner, delivery, webhook, number."""
    await db.write(run,
        """insert into attempts (owner_id, delivery_id, webhook_id, number, event_id, kind,
          outcome, started_at, total_us, url, request_headers, truncated, node_id, place)
        values ($1, $2, $3, $4, 'e', 'event', 'success', $5, 0, 'u', '[]', false, 'n', $6)""",
        *key, at, place,
    )  # fmt: skip


async def test_an_attempt_that_somebody_added_is_found(log: Log, db_url: str) -> None:
    """It has no place, and is newer than the first that has one."""
    db, keys, webhooks = log
    await add(db, ("o", "new", webhooks[0], 4), db.clock.wall())
    [fault] = (await walked(db_url, keys)).faults
    assert (fault.webhook_id, fault.place, fault.delivery_id, fault.number, fault.missing) == (
        webhooks[0], None, "new", 4, False,
    )  # fmt: skip
    assert fault.what == "it has no place, but others before it have one"


async def test_an_owner_from_another_database_has_his_own_first_place(
    log: Log, db_url: str
) -> None:
    """His attempts from before it are no fault; without a row of his move they are one."""
    db, keys, webhooks = log
    await add(db, ("came", "old", "w", 1), db.clock.wall())
    assert [one.delivery_id for one in (await walked(db_url, keys)).faults] == ["old"]
    await db.write(owner_moves.stand, "came", MoveState("here", "m", "one"))
    assert (await walked(db_url, keys)).faults == []
    # His places do not count as those of this database either.
    await db.write(run, "update attempts set started_at = 1 where delivery_id = 'old'")
    await add(db, ("came", "new", "v", 1), 0, place=1)
    await add(db, ("o", "early", webhooks[0], 5), 1)
    found = [one for one in (await walked(db_url, keys)).faults if one.place is None]
    assert [one.delivery_id for one in found] == ["old"]


async def test_a_digest_can_be_computed_from_its_description(log: Log) -> None:
    """As docs/explanation/security.md describes it, with nothing of the program."""
    db, _, webhooks = log
    before = b""
    for row in await db.read(
        rows, "select * from attempts where webhook_id = $1 order by place", webhooks[0]
    ):
        body = bytes(row["response_body"])
        shape = json.dumps([row["response_headers"], len(body)], separators=(",", ":"))
        answer = hashlib.sha256(shape.encode() + body).hexdigest()
        content: list[object] = []
        for name in COVERED:
            if name == "response_headers":
                content.append(answer)
            elif name == "truncated":
                content.append(bool(row[name]))
            elif name != "response_body":
                content.append(row[name])
        content += [row["place"], bytes(row["body_digest"]).hex()]
        content += [bytes(row["event_digest"]).hex(), row["state"]]
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        before = hashlib.sha256(before + text.encode()).digest()
        assert bytes(row["digest"]) == before


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_rotation_after_the_clock_was_ahead_leaves_the_chain_whole(db_url: str) -> None:
    """On PostgreSQL a node whose clock is ahead sends nothing."""
    clock, keys = Wall(), ring()
    clock.offset = 3_600_000_000
    db = await database.open(db_url, clock=clock, ids=Ids(), serving=True)
    async with inbox() as box, drain(db, keys, clock) as running:
        webhook_id = await running.webhook(box.url)
        for number, rotate in enumerate((False, True, False, True), 1):
            await db.write(make, f"record-{number}")
            await running.watch.until("delivery_finished", number)
            clock.offset = 0
            if rotate:
                assert await db.write(
                    secret_rotation.stage, webhook_id, new_secret(Ids().token(32)), keys
                )
                assert await db.write(secret_rotation.activate, webhook_id)
            verdict = await walked(db_url, keys)
            assert verdict.faults == []
        # The first secret is gone by now, and so is the second one a day later.
        assert verdict.judge.signed == {"right": 2, "replaced": 2}
        await db.write(run, "update webhooks set old_secret = null, old_secret_until = null")
        assert (await walked(db_url, keys)).judge.signed == {"replaced": 4}
        # Without the place, the first attempt looks as if the current secret should have signed it.
        await db.write(run, "update webhooks set secret_place = 0")
        [fault] = (await walked(db_url, keys)).faults
        assert (fault.place, fault.what) == (1, "its signature does not match its body")
    await db.close()
