"""Tests GET /api/events by webhook and number: each number is explained, and no other is shown."""

from __future__ import annotations

import json
from typing import Any

from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from tests.support.drain import add_webhook, ring
from tests.support.rest import Person, RestApi
from tests.support.tables import in_turn

ROOM = Capacity("node", "claim", 0, 0, 0, {}, 0)
KEY = ring()
URL = "http://127.0.0.1:9/"


async def run(tx: Tx, sql: str, *args: Any) -> int:
    return await tx.run(sql, *args)


async def numbered(api: RestApi, person: Person, count: int, **options: Any) -> str:
    """Return a webhook with so many deliveries."""
    me = (await person.get("/api/me")).body["id"]
    options = {"sequenced": True} | options
    webhook_id, _ = await add_webhook(
        api.db, KEY, URL, "contact.created", "contact.updated", owner=me, **options
    )
    for number in range(count):
        await person.post("/api/contacts", {"name": f"contact {number + 1}"})
    await api.db.write(fan_out, ROOM)
    return webhook_id


async def set_state(db: Database, sequence: int, state: str) -> None:
    await db.write(
        run, "update deliveries set state = $2, finished_at = 1 where sequence = $1",
        sequence, state,
    )  # fmt: skip


async def read(person: Person, query: str) -> Any:
    reply = await person.get(f"/api/events?{query}")
    assert reply.status == 200, reply.text
    return reply.body


async def test_each_number_is_explained(api: RestApi, ana: Person) -> None:
    webhook_id = await numbered(api, ana, 10)
    for number, state in ((2, "exhausted"), (3, "cancelled"), (4, "gone"), (5, "dead")):
        await set_state(api.db, number, state)
    await api.db.write(run, "delete from deliveries where sequence in (1, 8, 9)")
    await api.db.write(
        run, "delete from events where id in (select event_id from deliveries where sequence = 7)"
    )
    await api.db.write(
        run,
        "update events set body = null, erased_at = 5 where id in ("
        "select event_id from deliveries where sequence = 6)",
    )
    page = await read(ana, f"webhook={webhook_id}")
    assert [(one["sequence"], one["state"]) for one in page["data"]] == [
        (2, "exhausted"), (3, "cancelled"), (4, "gone"), (5, "dead"), (6, "erased"), (10, "ready"),
    ]  # fmt: skip
    assert [one["sequence"] for one in page["data"] if one["body"] is not None] == [10]
    assert page["expired"] == [{"first": 1, "last": 1}, {"first": 7, "last": 9}]
    assert page["lastSequence"] == 10
    alone = await read(ana, f"webhook={webhook_id}&sequence=8")
    assert (alone["data"], alone["expired"]) == ([], [{"first": 8, "last": 8}])


async def test_a_webhook_with_addresses_alone_has_them_here_too(api: RestApi, ana: Person) -> None:
    webhook_id = await numbered(api, ana, 1, thin=True)
    [event] = (await read(ana, f"webhook={webhook_id}&sequence=1"))["data"]
    data = json.loads(event["body"])["data"]
    assert (data["id"], data["type"]) == (event["recordId"], "contact")
    assert data["url"].endswith(f"/api/contacts/{event['recordId']}")
    assert "contact 1" not in event["body"]


async def test_pages_go_on_by_number(api: RestApi, ana: Person) -> None:
    webhook_id = await numbered(api, ana, 9)
    await api.db.write(run, "delete from deliveries where sequence in (3, 4, 8)")
    seen: list[int] = []
    expired: list[tuple[int, int]] = []
    query = f"webhook={webhook_id}&from=2&to=8&limit=2"
    while query:
        reply = await ana.get(f"/api/events?{query}")
        page = reply.body
        seen += [one["sequence"] for one in page["data"]]
        expired += [(one["first"], one["last"]) for one in page["expired"]]
        assert page["hasMore"] is ("Link" in reply.headers) is ("nextFrom" in page)
        if page["hasMore"]:
            assert f"from={page['nextFrom']}>" in reply.headers["Link"]
        query = reply.headers.get("Link", "").partition("?")[2].partition(">")[0]
        assert len(seen) < 9
    assert seen == [2, 5, 6, 7]
    assert expired == [(3, 4), (8, 8)]


async def test_only_a_webhook_of_the_caller(api: RestApi, ana: Person, bia: Person) -> None:
    webhook_id = await numbered(api, ana, 1)
    assert (await bia.get(f"/api/events?webhook={webhook_id}&sequence=1")).status == 403
    unknown = api.db.ids.new(api.db.clock.wall())
    assert (await bia.get(f"/api/events?webhook={unknown}&sequence=1")).status == 404


@in_turn(
    ("query", "field"),
    [
        ("sequence=1", "webhook"), ("from=1", "webhook"), ("webhook=x&sequence=1", "webhook"),
        ("webhook={}&sequence=0", "sequence"), ("webhook={}&sequence=x", "sequence"),
        ("webhook={}&sequence=", "sequence"), ("webhook={}&sequence=" + "9" * 19, "sequence"),
        ("webhook={}&from=-1", "from"), ("webhook={}&to=1.5", "to"),
        ("webhook={}&sequence=1&from=1", "sequence"), ("webhook={}&types=a", "types"),
        ("webhook={}&after=a", "after"),
    ],
)  # fmt: skip
async def test_a_bad_query_names_its_field(
    api: RestApi, ana: Person, query: str, field: str
) -> None:
    webhook_id = await numbered(api, ana, 1)
    reply = await ana.get(f"/api/events?{query.format(webhook_id)}")
    assert (reply.status, reply.faults) == (400, {field: "invalid_parameter"})


async def test_a_webhook_without_numbers_says_so(api: RestApi, ana: Person) -> None:
    webhook_id = await numbered(api, ana, 1, sequenced=False)
    reply = await ana.get(f"/api/events?webhook={webhook_id}&sequence=1")
    assert (reply.status, reply.faults) == (400, {"webhook": "invalid_parameter"})
    assert "console" in reply.text
