"""How long an owner with 100,000 records is closed, and what his move costs other owners."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import asyncpg
import pytest

from gateway.cli.moving.live_copy import COUNTS
from outbox.ids import Ids
from outbox.queue.state.chain import BODY, COVERED, HEADERS, answer_of, digest_of, event_of, packed
from outbox.webhooks.key_files import read_key_file
from tests.support.chains import walked
from tests.support.living import living
from tests.support.moved import Pair
from tests.support.movers import opened

RECORDS = 100_000
CLOSED_SECONDS = 2.0
IN_FLIGHT = 16
"""Most requests that may be on their way when the queue closes."""
SEQ = "update outbox_state set seq = seq + $1"
COPIES = {
    "contacts": ("id", "email"),
    "events": ("pos", "id", "seq", "record_id"),
    "deliveries": ("id", "event_id", "record_id", "seq", "sequence"),
    "attempts": ("delivery_id", "event_id"),
}
"""Tables with as many rows more, each a copy of one; these columns are new."""
NEW = {
    "pos": "nextval(pg_get_serial_sequence('events', 'pos'))",
    "seq": "(select seq from outbox_state) - n", "sequence": "null", "email": "null",
}  # fmt: skip
WORKS = "and state = 'delivered' and webhook_id in (select webhook_id from lanes)"
IDS = {"record_id": "c", "event_id": "e", "delivery_id": "d"}
"""The columns with new ids, and the letter of each."""
COLUMNS = """
select string_agg(attname, ', ') as names from pg_attribute
where attrelid = to_regclass($1) and attnum > 0 and not attisdropped and attname <> all ($2)
"""
FILL = """
insert into {table} ({columns}, {new}) {override}
select {columns}, {values} from (
  select * from {table} where owner_id = $1 {condition} limit 1) as one
cross join generate_series(1, {records}) as n
"""

COPIED = """
select {columns}, e.body_digest, a.state as reached, e.name, e.record_id as event,
  e.record_version, e.occurred_at
from (select * from attempts where owner_id = $1 and delivery_id like 'd%') as a
join (
  select id, name, record_id, record_version, occurred_at, body_digest from events) as e
  on e.id = a.event_id
order by delivery_id
"""
PLACES = """
create temporary table places (id text, place bigint, event bytea, digest bytea, body bytea)
"""
LINK = """
update attempts set place = p.place, event_digest = p.event, digest = p.digest, body_digest = p.body
from places p where delivery_id = p.id
"""
HEAD = "select chain_place, chain_digest from lanes where webhook_id = $1"
# As if what is before had been signed with an earlier secret.
END = """
with signed as (update webhooks set secret_place = $2 where id = $1)
update lanes set chain_place = $2, chain_digest = $3 where webhook_id = $1
"""


def value(table: str, column: str, owner: str) -> str:
    """Return the value of a new column, in SQL."""
    letter = table[0] if column == "id" else IDS.get(column, "")
    return NEW.get(column) or f"'{letter}{owner[-6:]}' || lpad(cast(n as text), 17, '0')"


async def fill(tx: Any, owner: str) -> None:
    """Give an owner many records, each with an event, a delivery and an attempt."""
    await tx.run(SEQ, RECORDS + 1)
    for table, new in COPIES.items():
        row = await tx.one(COLUMNS, table, list(new))
        count = await tx.run(
            FILL.format(
                table=table, columns=row["names"], new=", ".join(new), records=RECORDS,
                override="overriding system value" if table == "events" else "",
                values=", ".join(value(table, column, owner) for column in new),
                condition=WORKS if table in ("deliveries", "attempts") else "",
            ),
            owner,
        )  # fmt: skip
        assert count == RECORDS


async def chain(url: str, owner: str) -> None:
    """Let these attempts be a chain behind those of their webhook."""
    connection = await asyncpg.connect(url)
    copied = await connection.fetch(COPIED.format(columns=", ".join(COVERED)), owner)
    webhook = copied[0]["webhook_id"]
    place, digest = await connection.fetchrow(HEAD, webhook)
    before = bytes.fromhex(digest)
    linked = []
    for row in copied:
        place += 1
        body = packed(row["body_digest"])
        event = event_of(row["name"], row["event"], row["record_version"], row["occurred_at"])
        values = [row[name] for name in COVERED]
        before = digest_of(
            before, values, answer_of(values[HEADERS], values[BODY]), place, body, event,
            row["reached"],
        )  # fmt: skip
        linked.append((row["delivery_id"], place, event, before, body))
    await connection.execute(PLACES)
    await connection.copy_records_to_table("places", records=linked)
    await connection.execute(LINK)
    await connection.execute(END, webhook, place, before.hex())
    await connection.close()


async def _costs(pair: Pair) -> None:
    db = await opened(pair.house.url)
    for owner in pair.house.owners:
        await db.apart("migration").write(fill, owner)
    await db.close()
    await chain(pair.house.url, pair.house.mover)
    async with living(pair) as life:
        await life.mover.until(200)
        before, life.other.seconds = life.other.p99, []
        status, said = await life.move()
        assert status == 0, said
        assert "It was so before" not in said
        during = life.other.p99
        await life.mover.until(len(life.mover.made) + 20)
        assert life.mover.at == 1
        refused = life.mover.refused[-1] - life.mover.refused[0]
        print(
            said, f"writes were refused for {refused:.2f} s",
            f"p99 of the other owner: {before * 1000:.0f} ms before, {during * 1000:.0f} ms during",
            f"repeated: {life.repeated}",
        )  # fmt: skip
        closed = re.search(r"Closed for ([0-9.]+) seconds", said)
        assert closed is not None
        assert float(closed[1]) <= CLOSED_SECONDS
    assert life.repeated <= IN_FLIGHT
    assert not (await walked(pair.target, read_key_file(pair.keys, Ids()))).faults
    connection = await asyncpg.connect(pair.house.url)
    left = await connection.fetch(COUNTS, pair.house.mover)
    await connection.close()
    assert {row["name"] for row in left if row["count"]} == set()


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_an_owner_with_many_records_is_closed_for_two_seconds_at_most(pair: Pair) -> None:
    asyncio.run(_costs(pair))
    assert pair.states() == ["gone", "here"]
    assert pair.guards() == [0, 0]
