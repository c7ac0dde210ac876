"""Tests GET /api/events, the feed for receivers that missed deliveries."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

import pytest

from gateway.domain.webhooks import feed, webhooks
from gateway.records.audit import Actor
from gateway.server.config import Config, Limits, Retention
from outbox.database.transaction import Database, Row, Tx
from outbox.events import event_feed
from outbox.events.event_feed import FeedPage
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from tests.support.clocks import Wall
from tests.support.databases import open_fresh
from tests.support.drain import OWNER, add_webhook, make
from tests.support.rest import Person, Reply, RestApi
from tests.support.site import serving

DAY = 86_400_000_000

ROOM = Capacity("node", "claim", 0, 0, 0, {}, 0)


async def fanned_out(api: RestApi) -> None:
    """Fan out the events as the drain does, without sending."""
    await api.db.write(fan_out, ROOM)


async def rows(tx: Tx, sql: str, *args: Any) -> list[Row]:
    return await tx.all(sql, *args)


async def run(tx: Tx, sql: str, *args: Any) -> int:
    return await tx.run(sql, *args)


async def contacts(person: Person, *names: str) -> list[str]:
    return [(await person.post("/api/contacts", {"name": name})).body["id"] for name in names]


async def read(person: Person, query: str = "") -> Any:
    reply = await person.get(f"/api/events{query}")
    assert reply.status == 200, reply.text
    return reply.body


def names_in(page: Any) -> list[str]:
    return [json.loads(event["body"])["data"]["name"] for event in page["data"]]


async def test_the_bodies_are_those_of_the_outbox(api: RestApi, ana: Person) -> None:
    contact = await ana.post(
        "/api/contacts", {"name": "João \U0001f600 \\ \" Ünï", "email": "j@example.com"},
        X_Request_Id="order-77",
    )  # fmt: skip
    await ana.put(f"/api/contacts/{contact.body['id']}", {"position": "Buyer"})
    await fanned_out(api)
    page = await read(ana)
    assert page["hasMore"] is False
    stored = await api.db.read(rows, "select id, body, body_digest from events order by seq")
    assert [event["id"] for event in page["data"]] == [row["id"] for row in stored]
    for event, row in zip(page["data"], stored, strict=True):
        assert event["body"].encode() == bytes(row["body"])
        assert hashlib.sha256(event["body"].encode()).hexdigest() == row["body_digest"]
    first, second = page["data"]
    assert (first["event"], first["recordId"], first["recordVersion"]) == (
        "contact.created", contact.body["id"], 1,
    )  # fmt: skip
    assert (second["event"], second["recordVersion"]) == ("contact.updated", 2)
    assert first["requestId"] == "order-77"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["occurredAt"])
    assert page["nextCursor"] == second["id"]


async def test_an_event_appears_after_it_has_its_position(api: RestApi, ana: Person) -> None:
    assert await read(ana) == {"data": [], "hasMore": False}
    await contacts(ana, "Bruno")
    assert await read(ana) == {"data": [], "hasMore": False}
    await fanned_out(api)
    assert names_in(await read(ana)) == ["Bruno"]


async def test_paging_returns_each_event_once_and_can_resume(api: RestApi, ana: Person) -> None:
    await contacts(ana, *"abcdefg")
    await fanned_out(api)
    seen: list[str] = []
    after, more = "", True
    while more:
        reply = await ana.get(f"/api/events?limit=3{after}")
        page = reply.body
        seen += names_in(page)
        more = page["hasMore"]
        assert ("Link" in reply.headers) is more
        if more:
            assert reply.headers["Link"] == (
                f'</api/events?limit=3&cursor={page["nextCursor"]}>; rel="next"'
            )
        after = f"&after={page['nextCursor']}"
        assert len(seen) < 20
    assert seen == [*"abcdefg"]
    place = after.removeprefix("&after=")
    again = await read(ana, f"?after={place}")
    assert again == {"data": [], "hasMore": False, "nextCursor": place}
    await contacts(ana, "h")
    await fanned_out(api)
    assert names_in(await read(ana, f"?after={place}")) == ["h"]


async def test_only_the_callers_own(api: RestApi, ana: Person, bia: Person) -> None:
    await contacts(ana, "of ana")
    await contacts(bia, "of bia")
    await fanned_out(api)
    assert names_in(await read(ana)) == ["of ana"]
    theirs = (await read(bia))["nextCursor"]
    foreign = await ana.get(f"/api/events?after={theirs}")
    unknown = await ana.get(f"/api/events?after={api.db.ids.new(api.db.clock.wall())}")
    assert (foreign.status, foreign.faults) == (400, {"after": "invalid_parameter"})
    assert unknown.body["error"] == foreign.body["error"]


async def test_a_purged_after_starts_at_the_oldest_event(api: RestApi, ana: Person) -> None:
    await contacts(ana, "kept")
    await fanned_out(api)
    long_ago = api.db.ids.new(api.db.clock.wall() - 31 * DAY)
    assert names_in(await read(ana, f"?after={long_ago}")) == ["kept"]
    assert names_in(await read(ana, f"?after={long_ago.upper()}")) == ["kept"]


async def test_events_past_the_retention_are_left_out(db: Database) -> None:
    limits = Limits(read_per_second=0, write_per_second=0)
    async with serving(db, Config(limits=limits, retention=Retention(events_days=2))) as site:
        api = RestApi(site)
        ana = await api.person()
        old, new = await contacts(ana, "old", "new")
        await db.write(
            run, "update events set occurred_at = $2 where record_id = $1", old,
            db.clock.wall() - 2 * DAY - 1,
        )  # fmt: skip
        await fanned_out(api)
        assert [event["recordId"] for event in (await read(ana))["data"]] == [new]


@pytest.mark.parametrize("days", [-31, 31])
async def test_a_clock_that_is_wrong_for_a_moment_hides_no_event(db_url: str, days: int) -> None:
    """A poll must not pass for ever what it does not show."""
    clock, actor = Wall(), Actor(OWNER, "api_key")
    db = await open_fresh(db_url, clock)

    async def after(place: str) -> FeedPage:
        return await db.read(feed.page, actor, after=place, names=None, limit=10, days=30)

    first = await db.write(make, "first")
    clock.offset = days * DAY
    await db.write(make, "meanwhile")
    clock.offset = 0
    await db.write(make, "last")
    await db.write(fan_out, ROOM)
    clock.offset = max(days, 0) * DAY
    page = await after(first)
    assert [entry.record_id for entry in page.entries] == ["meanwhile", "last"]
    assert [entry.record_id for entry in (await after("")).entries][-1] == "last"
    clock.offset = 0
    assert (await after(page.place or "")).entries == []
    await db.close()


async def test_types(api: RestApi, ana: Person) -> None:
    [one, two] = await contacts(ana, "one", "two")
    await ana.post("/api/companies", {"name": "Acme"})
    await ana.delete(f"/api/contacts/{one}")
    await fanned_out(api)

    async def events(types: str) -> list[tuple[str, str]]:
        page = await read(ana, f"?types={types}")
        return [(event["event"], event["recordId"]) for event in page["data"]]

    assert await events("contact.deleted") == [("contact.deleted", one)]
    assert await events("contact.deleted,%20contact.created%20,") == [
        ("contact.created", one), ("contact.created", two), ("contact.deleted", one),
    ]  # fmt: skip
    assert await events("contact.flown") == []
    assert await events("%00") == []
    assert len(await events("")) == 4
    # The next page does not search the same events again.
    last = (await read(ana))["nextCursor"]
    assert (await read(ana, "?types=company.created"))["nextCursor"] == last


async def test_a_rare_type_is_searched_in_steps(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "SCANNED", 3)
    await contacts(ana, *"abcdefg")
    await ana.post("/api/companies", {"name": "Acme"})
    await fanned_out(api)
    found, pages, query = [], 0, "?types=company.created"
    while True:
        page = await read(ana, query)
        found += page["data"]
        pages += 1
        if not page["hasMore"]:
            break
        query = f"?types=company.created&after={page['nextCursor']}"
    assert (len(found), pages) == (1, 3)


@pytest.mark.parametrize(("limit", "size"), [("", 20), ("?limit=5", 5), ("?limit=500", 100)])
async def test_page_sizes(api: RestApi, ana: Person, limit: str, size: int) -> None:
    await ana.post("/api/products", {"name": "Tea", "price": 1})
    [event] = await api.db.read(rows, "select owner_id from events")

    async def many(tx: Tx) -> None:
        await tx.many(
            "insert into events (id, owner_id, name, record_id, record_version, occurred_at, body,"
            " body_digest) values ($1, $2, 'product.created', $1, 1, $3, $4, '')",
            [(tx.new_id(), event["owner_id"], tx.now, b"{}") for _ in range(120)],
        )

    await api.db.write(many)
    await fanned_out(api)
    page = await read(ana, limit)
    assert len(page["data"]) == size
    assert page["hasMore"] is True


async def test_test_events_are_left_out(api: RestApi, ana: Person) -> None:
    from gateway.server.app_keys import KEYRING

    webhook_id, _ = await add_webhook(
        api.db, api.site.app[KEYRING], "https://hooks.example.com/", "contact.created",
        owner=ana.user_id,
    )  # fmt: skip
    await api.db.write(webhooks.test, Actor(ana.user_id, "session"), webhook_id, "contact.created")
    await contacts(ana, "real")
    await fanned_out(api)
    assert names_in(await read(ana)) == ["real"]


async def test_the_body_of_an_erased_person_is_null(api: RestApi, ana: Person) -> None:
    await contacts(ana, "Bruno")
    await fanned_out(api)
    await api.db.write(run, "update events set body = null, erased_at = $1", 1_700_000_000_000_000)
    [event] = (await read(ana))["data"]
    assert event["body"] is None
    assert event["erasedAt"] == "2023-11-14T22:13:20.000Z"


async def test_the_feed_needs_the_scope_read(api: RestApi, ana: Person) -> None:
    writer = await api.key_of(ana.user_id, ["write"])
    replies: list[Reply] = [await p.get("/api/events") for p in (api.nobody, writer)]
    assert [reply.status for reply in replies] == [401, 403]
    assert (await ana.post("/api/events", {})).status == 405


async def test_the_feed_uses_its_index(api: RestApi, ana: Person) -> None:
    """The feed reads only the owner's events, not the rest of the table."""
    await contacts(ana, "one")
    await fanned_out(api)
    explain = "explain query plan" if api.db.engine == "sqlite" else "explain"
    if api.db.engine == "postgres":
        await api.db.write(run, "analyze events")

    async def plans(tx: Tx) -> str:
        if tx.engine == "postgres":
            await tx.run("set local enable_seqscan = off")
        told = []
        for sql, args in (
            (event_feed._LAST, (ana.user_id,)),
            (event_feed._PAGE.format(names=""), (ana.user_id, 0, 2**62, 0, 21)),
            (event_feed._BOUND, (ana.user_id, 0, 9)),
        ):
            lines = await tx.all(f"{explain} {sql}", *args)
            told.append(
                " ".join(str(line[-1] if tx.engine == "sqlite" else line[0]) for line in lines)
            )
        return "\n".join(told)

    plan = await api.db.read(plans)
    assert plan.count("events_feed") == 3, plan


async def test_a_damaged_event_hides_no_other(api: RestApi, ana: Person) -> None:
    await contacts(ana, "One", "Two", "Three")
    await fanned_out(api)
    [_, second, _] = await api.db.read(rows, "select id, body from events order by seq")
    damaged = bytes(second["body"]).replace(b"Two", b"T\xf7o")
    await api.db.write(run, "update events set body = $2 where id = $1", second["id"], damaged)
    assert names_in(await read(ana)) == ["One", "T\ufffdo", "Three"]
