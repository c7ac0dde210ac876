"""Deliveries by REST: lists with filters, one with its attempts, replays."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from aiohttp import web

from gateway.domain.webhooks import delivery_search, webhooks
from gateway.records.audit import Actor
from gateway.server.app_keys import KEYRING
from gateway.server.config import Config, Egress
from outbox.database.transaction import Database, Tx
from outbox.queue.drain.fanout import fan_out
from outbox.queue.log.delivery_types import FILTERS
from outbox.queue.state.claimed_deliveries import Capacity
from outbox.queue.upkeep.erasure import Erasure
from outbox.queue.upkeep.erasure_requests import request as erase_events
from outbox.queue.upkeep.parking import Removed
from outbox.sending.oddities import NOTES
from tests.support.document import answer_faults
from tests.support.drain import Inbox, add_webhook, inbox, rows
from tests.support.hostilities import ODD, says_and_closes
from tests.support.receiver import hostile
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.site import serving
from tests.support.tables import in_turn
from tests.support.waiting import until

ROOM = Capacity("node", "claim", 0, 0, 0, {}, 0)
NOWHERE = "0" * 24
CONFIG = Config(limits=UNLIMITED.limits, egress=Egress(allow_http=True, allow=("127.0.0.0/8",)))


async def hook(
    api: RestApi, who: Person, url: str = "https://hooks.example.com/", **more: Any
) -> str:
    """Return the id of a new webhook for contacts."""
    ring = api.site.app[KEYRING]
    webhook_id, _ = await add_webhook(
        api.db, ring, url, "contact.created", "contact.updated", owner=who.user_id, **more
    )
    return webhook_id


async def contact(api: RestApi, who: Person, name: str = "Bruno", **headers: Any) -> str:
    """Create a contact, and the deliveries of its event; return its id."""
    made = await who.post("/api/contacts", {"name": name}, **headers)
    await api.db.write(fan_out, ROOM)
    return str(made.body["id"])


async def listed(who: Person, query: str = "") -> list[dict[str, Any]]:
    reply = await who.get(f"/api/deliveries{query}")
    assert reply.status == 200, reply.text
    assert answer_faults("GET", "/api/deliveries", 200, reply.body) == []
    found: list[dict[str, Any]] = reply.body["data"]
    return found


async def change(db: Database, sql: str, *args: Any) -> None:
    async def unit(tx: Tx) -> None:
        await tx.run(sql, *args)

    await db.write(unit)


async def end(db: Database, delivery_id: str, state: str = "dead") -> None:
    """End a delivery in this state."""
    await change(
        db, "update deliveries set state = $2, finished_at = created_at where id = $1",
        delivery_id, state,
    )  # fmt: skip


@pytest.fixture
async def running(db: Database) -> AsyncIterator[tuple[RestApi, Inbox]]:
    """The API with its drain, and a receiver."""
    async with inbox() as box, serving(db, CONFIG, role="all") as site:
        yield RestApi(site), box


async def ended(who: Person, count: int = 1) -> list[dict[str, Any]]:
    """Return the deliveries that have ended, once there are so many."""

    async def look() -> list[dict[str, Any]]:
        done = [one for one in await listed(who) if "finishedAt" in one]
        return done if len(done) >= count else []

    return await until(look)


async def test_a_delivery_shows_what_was_sent_and_answered(running: tuple[RestApi, Inbox]) -> None:
    api, box = running

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=404, text="no such \u202e thing", headers={"X-Told": "you"})

    box.answer = answer
    ana = await api.person()
    webhook_id = await hook(
        api, ana, f"{box.url}/in", headers=(("Authorization", "Bearer hidden"),), schedule=()
    )
    made = await ana.post("/api/contacts", {"name": "João"}, X_Request_Id="order-77")
    [got] = await box.until(1)
    [one] = await ended(ana)
    assert one | {"createdAt": "", "finishedAt": ""} == {
        "id": one["id"], "eventId": got.headers["X-Webhook-Id"], "event": "contact.created",
        "webhookId": webhook_id, "recordId": made.body["id"], "state": "exhausted",
        "origin": "event", "attemptCount": 1, "reason": one["reason"], "lastOutcome": "http_4xx",
        "lastStatus": 404, "createdAt": "", "finishedAt": "",
    }  # fmt: skip
    reply = await ana.get(f"/api/deliveries/{one['id'].upper()}")
    assert answer_faults("GET", "/api/deliveries/{id}", 200, reply.body) == []
    assert {name: reply.body[name] for name in one} == one
    assert reply.body["body"].encode() == got.body
    assert (reply.body["recordVersion"], reply.body["requestId"]) == (1, "order-77")
    [attempt] = reply.body["attempts"]
    assert (attempt["number"], attempt["outcome"], attempt["status"]) == (1, "http_4xx", 404)
    assert (attempt["url"], attempt["durationMs"] > 0) == (f"{box.url}/in", True)
    assert (attempt["responseBody"], attempt["responseTruncated"]) == (
        "no such \u202e thing",
        False,
    )
    sent = {pair["name"]: pair["value"] for pair in attempt["requestHeaders"]}
    assert sent["Authorization"] == "***"
    assert sent["X-Webhook-Signature"] == got.headers["X-Webhook-Signature"]
    assert {"name": "X-Told", "value": "you"} in attempt["responseHeaders"]
    assert "hidden" not in reply.text


async def test_an_odd_response_counts_and_its_body_is_shown_as_text(
    running: tuple[RestApi, Inbox],
) -> None:
    api, _ = running
    ana = await api.person()
    async with hostile(says_and_closes(ODD)) as there:
        await hook(api, ana, there.url)
        await ana.post("/api/contacts", {"name": "João"})
        [one] = await ended(ana)
    assert (one["state"], one["lastStatus"]) == ("gone", 410)
    reply = await ana.get(f"/api/deliveries/{one['id']}")
    assert answer_faults("GET", "/api/deliveries/{id}", 200, reply.body) == []
    [attempt] = reply.body["attempts"]
    assert (attempt["outcome"], attempt["responseBody"]) == ("http_4xx", "não \ufffd")
    assert b64decode(attempt["responseBodyBase64"]) == ODD.partition(b"\n\n")[2]
    assert attempt["notes"] == [NOTES[one] for one in ("line_end", "name", "control", "version")]
    assert "error" not in attempt


async def test_a_damaged_body_is_shown(api: RestApi, ana: Person) -> None:
    await hook(api, ana)
    await contact(api, ana)
    await change(api.db, "update events set body = $1", b"Brun\xef")
    [one] = await listed(ana)
    reply = await ana.get(f"/api/deliveries/{one['id']}")
    assert (reply.status, reply.body["body"]) == (200, "Brun\ufffd")


DAMAGED = ["", "[", "{}", "null", "7", "[7]", '["a"]', '[["a"]]', '[["a", 7]]', "[" * 5_000]


async def test_an_attempt_with_damaged_headers_is_shown_without_them(
    running: tuple[RestApi, Inbox],
) -> None:
    api, box = running
    ana = await api.person()
    await hook(api, ana, f"{box.url}/in")
    await ana.post("/api/contacts", {"name": "João"})
    [one] = await ended(ana)
    [whole] = (await ana.get(f"/api/deliveries/{one['id']}")).body["attempts"]
    assert whole["requestHeaders"]
    assert whole["responseHeaders"]
    for column, name in (
        ("request_headers", "requestHeaders"), ("response_headers", "responseHeaders"),
    ):  # fmt: skip
        for damaged in DAMAGED:
            await change(api.db, f"update attempts set {column} = $1", damaged)
            reply = await ana.get(f"/api/deliveries/{one['id']}")
            assert reply.status == 200, (column, damaged)
            whole[name] = []
            assert reply.body["attempts"] == [whole], (column, damaged)


async def test_a_replay_is_sent_with_the_same_id_and_bytes(
    running: tuple[RestApi, Inbox],
) -> None:
    api, box = running
    ana = await api.person()
    await hook(api, ana, f"{box.url}/in")
    await ana.post("/api/contacts", {"name": "João"})
    [first] = await box.until(1)
    [one] = await ended(ana)
    reply = await ana.post(f"/api/deliveries/{one['id']}/replay")
    assert (reply.status, reply.headers["Location"]) == (202, f"/api/deliveries/{reply.body['id']}")
    assert answer_faults("POST", "/api/deliveries/{id}/replay", 202, reply.body) == []
    assert (reply.body["origin"], reply.body["eventId"]) == ("replay", one["eventId"])
    _, second = await box.until(2)
    assert second.body == first.body
    assert second.headers["X-Webhook-Id"] == first.headers["X-Webhook-Id"]


async def test_filters(api: RestApi, ana: Person) -> None:
    one, other = await hook(api, ana), await hook(api, ana)
    bruno, carla = await contact(api, ana), await contact(api, ana, "Carla")
    await ana.put(f"/api/contacts/{carla}", {"name": "Carla B"})
    await api.db.write(fan_out, ROOM)
    everything = await listed(ana)
    assert len(everything) == 6
    assert [row["id"] for row in everything] == sorted((r["id"] for r in everything), reverse=True)
    dead = [row["id"] for row in everything if row["webhookId"] == other][:2]
    for delivery_id in dead:
        await end(api.db, delivery_id)
    assert {r["id"] for r in await listed(ana, "?state=dead")} == {*dead}
    assert {r["id"] for r in await listed(ana, "?state=failed")} == {*dead}
    assert await listed(ana, f"?state=dead&webhookId={one}") == []
    assert len(await listed(ana, f"?webhookId={one.upper()}")) == 3
    assert {r["recordId"] for r in await listed(ana, f"?recordId={bruno}")} == {bruno}
    assert len(await listed(ana, f"?recordId={carla.upper()}")) == 4
    assert len(await listed(ana, f"?recordId={carla}&event=contact.updated&webhookId={one}")) == 1
    assert {r["event"] for r in await listed(ana, "?event=contact.updated")} == {"contact.updated"}
    assert len(await listed(ana, "?state=waiting")) == 4
    states = {state: await listed(ana, f"?state={state}") for state in FILTERS}
    assert len(states["all"]) == 6
    assert states["delivered"] == states["cancelled"] == []
    for query in (
        f"webhookId={NOWHERE}", f"recordId={NOWHERE}", f"recordId={everything[0]['id']}",
        f"recordId={everything[0]['eventId']}",
    ):  # fmt: skip
        assert await listed(ana, f"?{query}") == [], query


async def test_pages_return_each_delivery_once(api: RestApi, ana: Person) -> None:
    await hook(api, ana)
    for n in range(60):
        await ana.post("/api/contacts", {"name": f"N {n}"})
    await api.db.write(fan_out, ROOM)
    for query in ("", "state=waiting&limit=25", "event=contact.created&after="):
        seen, where, more = list[str](), f"/api/deliveries?{query}", True
        while more:
            reply = await ana.get(where)
            seen += [row["id"] for row in reply.body["data"]]
            more = reply.body["hasMore"]
            assert ("Link" in reply.headers) is more
            if more:
                where = reply.headers["Link"].partition(">")[0][1:]
                assert f"cursor={reply.body['nextCursor']}" in where
            assert len(reply.body["data"]) <= (25 if "limit" in query else 50)
        assert (len(seen), len({*seen})) == (60, 60)


async def walk(who: Person, query: str, limit: int) -> list[str]:
    """Return the ids of all pages of a list; each page has at most `limit` rows."""
    seen, cursor, more = list[str](), "", True
    while more:
        page = (await who.get(f"/api/deliveries?{query}&limit={limit}{cursor}")).body
        assert len(page["data"]) <= limit
        assert page["data"] or not page["hasMore"]
        seen += [row["id"] for row in page["data"]]
        more = page["hasMore"]
        cursor = f"&cursor={page['nextCursor']}" if more else ""
    assert len(seen) == len({*seen})
    return seen


@pytest.mark.parametrize("examined", [3, 500])
async def test_pages_of_a_record_return_each_delivery_once(
    api: RestApi, ana: Person, monkeypatch: pytest.MonkeyPatch, examined: int
) -> None:
    """Its events have several deliveries each, more than one round of the search examines."""
    monkeypatch.setattr(delivery_search, "EXAMINED", examined)
    hooks = [await hook(api, ana) for _ in range(4)]
    bruno, carla = await contact(api, ana), await contact(api, ana, "Carla")
    for name in ("Carla B", "Carla C"):
        await ana.put(f"/api/contacts/{carla}", {"name": name})
    await api.db.write(fan_out, ROOM)
    first = [row for row in await listed(ana) if row["recordId"] == carla][-1]
    again = (await ana.post(f"/api/deliveries/{first['id']}/replay")).body["id"]
    for delivery in (first["id"], again):
        await end(api.db, delivery)
    everything = [row for row in await listed(ana, "?limit=100") if row["recordId"] == carla]
    assert len(everything) == 13
    ids = {row["id"] for row in everything}
    for limit in (1, 2, 3, 4, 5, 12, 13, 100):
        assert {*await walk(ana, f"recordId={carla}", limit)} == ids
        assert {*await walk(ana, f"recordId={carla}&state=failed", limit)} == {first["id"], again}
        of_one = {row["id"] for row in everything if row["webhookId"] == hooks[1]}
        assert {*await walk(ana, f"recordId={carla}&webhookId={hooks[1]}", limit)} == of_one
    # What is on one page is sorted by delivery: the replay of the oldest event comes first.
    whole = [row["id"] for row in await listed(ana, f"?recordId={carla}")]
    assert whole == sorted(ids, reverse=True)
    # Earlier versions gave the `seq` of the last event of a page.
    [last] = await api.db.read(
        rows, "select seq from events where id = $1", everything[-1]["eventId"]
    )
    older = await listed(ana, f"?recordId={carla}&cursor={last['seq'] + 1}")
    assert {row["eventId"] for row in older} == {first["eventId"]}
    assert len(older) == 5
    assert await listed(ana, f"?recordId={carla}&cursor={last['seq']}") == []
    assert len(await listed(ana, f"?recordId={bruno}")) == 4


@in_turn("after", ["x", "0" * 23, "g" * 24, "%00", "1-x", "-1", "1" * 30, "%ff"])
async def test_an_invalid_place_is_refused(api: RestApi, ana: Person, after: str) -> None:
    for name in ("after", "cursor"):
        reply = await ana.get(f"/api/deliveries?{name}={after}")
        assert (reply.status, reply.faults) == (400, {name: "invalid_parameter"})


async def test_the_log_of_a_deleted_webhook_is_listed(running: tuple[RestApi, Inbox]) -> None:
    api, box = running
    ana, bia = await api.person(), await api.person()
    asked, go = asyncio.Event(), asyncio.Event()

    async def answer(request: web.Request) -> web.Response:
        asked.set()
        await go.wait()
        return web.Response(status=202)

    box.answer = answer
    webhook_id = await hook(api, ana, f"{box.url}/in")
    await hook(api, ana, f"{box.url}/in")
    await ana.post("/api/contacts", {"name": "João"})
    await asked.wait()
    assert await webhooks.delete(api.db, Actor(ana.user_id, "session"), webhook_id) == Removed(0, 1)
    go.set()

    async def look() -> Any:
        [one] = await listed(ana, f"?webhookId={webhook_id}")
        return one if "finishedAt" in one else None

    one = await until(look)
    assert (one["state"], one["attemptCount"], one["lastStatus"]) == ("delivered", 1, 202)
    detail = await ana.get(f"/api/deliveries/{one['id']}")
    assert [attempt["status"] for attempt in detail.body["attempts"]] == [202]
    assert await listed(ana, f"?webhookId={webhook_id}&state=delivered") == [one]
    assert await listed(ana, f"?webhookId={webhook_id}&state=waiting") == []
    assert await listed(bia, f"?webhookId={webhook_id}") == []


async def test_a_replay_of_what_waits_says_so(api: RestApi, ana: Person) -> None:
    webhook_id = await hook(api, ana)
    await contact(api, ana)
    await api.db.write(webhooks.pause, Actor(ana.user_id, "session"), webhook_id)
    [one] = await listed(ana)
    assert (one["state"], one["waiting"]) == ("parked", {"reason": "paused"})
    reply = await ana.post(f"/api/deliveries/{one['id']}/replay")
    assert answer_faults("POST", "/api/deliveries/{id}/replay", 202, reply.body) == []
    assert (reply.body["state"], reply.body["waiting"]) == ("parked", {"reason": "paused"})
    assert reply.body["warnings"] == [{"code": "delivery_waiting", "deliveryId": one["id"]}]
    await end(api.db, one["id"])
    reply = await ana.post(f"/api/deliveries/{one['id']}/replay")
    assert reply.body["warnings"] == []


async def test_a_pause_is_told(api: RestApi, ana: Person) -> None:
    webhook_id = await hook(api, ana)
    await contact(api, ana)
    [one] = await listed(ana)
    assert "waiting" not in one
    await change(api.db, "update lanes set wait_until = due_now() + 600000000")
    [one] = await listed(ana)
    detail = (await ana.get(f"/api/deliveries/{one['id']}")).body
    for shown in (one, detail):
        assert shown["waiting"]["reason"] == "retry_after"
        assert shown["waiting"]["until"] == shown["nextAttemptAt"]
    reply = await ana.get("/api/webhooks")
    assert answer_faults("GET", "/api/webhooks", 200, reply.body) == []
    [shown] = reply.body["data"]
    assert (shown["id"], shown["waiting"]["reason"]) == (webhook_id, "retry_after")
    await change(api.db, "update lanes set rate_until = wait_until, rate = 1")
    [one] = await listed(ana)
    assert one["waiting"]["reason"] == "rate_limit"


async def test_webhooks_with_the_same_url_are_told(api: RestApi, ana: Person) -> None:
    one = await hook(api, ana, "https://Hooks.example.com:443/in?a=1")
    two = await hook(api, ana, "https://hooks.example.com/in?a=1")
    await hook(api, ana, "https://hooks.example.com/in?a=2")
    reply = await ana.get("/api/webhooks")
    assert answer_faults("GET", "/api/webhooks", 200, reply.body) == []
    warned = {row["id"]: row["warnings"] for row in reply.body["data"] if "warnings" in row}
    events = ["contact.created", "contact.updated"]
    assert warned == {
        one: [{"code": "same_url", "webhookId": two, "events": events}],
        two: [{"code": "same_url", "webhookId": one, "events": events}],
    }


async def test_only_its_owner_reaches_a_delivery(api: RestApi, ana: Person, bia: Person) -> None:
    await hook(api, ana)
    webhook_id = await hook(api, bia)
    await contact(api, ana)
    theirs = await contact(api, bia)
    [mine] = await listed(ana)
    blind = {
        "GET": await api.key_of(ana.user_id, ["write"]),
        "POST": await api.key_of(ana.user_id, ["read"]),
    }
    routes = (("GET", "/api/deliveries/{id}"), ("POST", "/api/deliveries/{id}/replay"))
    for method, path in routes:
        where = path.replace("{id}", mine["id"])
        assert (await api.nobody.call(method, where)).status == 401
        for who in (bia, blind[method]):
            refused(await who.call(method, where), 403, "forbidden")
        for wrong in (NOWHERE, "x", "%00", "%ff", NOWHERE + "0"):
            # A key without the scope does not learn which ids there are either.
            refused(await ana.call(method, path.replace("{id}", wrong)), 404, "not_found")
    refused(await blind["GET"].get("/api/deliveries"), 403, "forbidden")
    for query in (f"?webhookId={webhook_id}", f"?recordId={theirs}"):
        assert await listed(ana, query) == []
    [of_bia] = await listed(bia)
    assert {row["id"] for row in await listed(ana, f"?after={of_bia['id']}")} <= {mine["id"]}
    assert len(await api.db.read(rows, "select id from deliveries")) == 2


def refused(reply: Reply, status: int, code: str) -> None:
    assert (reply.status, reply.body["code"]) == (status, code), reply.text
    assert reply.body["requestId"] == reply.headers["X-Request-Id"]


async def delete_webhook(api: RestApi, who: Person, one: dict[str, Any]) -> None:
    await webhooks.delete(api.db, Actor(who.user_id, "session"), one["webhookId"])


async def purge(api: RestApi, who: Person, one: dict[str, Any]) -> None:
    await end(api.db, one["id"])
    await change(api.db, "delete from events where id = $1", one["eventId"])


async def erase(api: RestApi, who: Person, one: dict[str, Any]) -> None:
    await end(api.db, one["id"], "delivered")
    await api.db.write(erase_events, who.user_id, [one["recordId"]])
    await Erasure(api.db).run_once()


async def as_test(api: RestApi, who: Person, one: dict[str, Any]) -> None:
    await change(api.db, "update deliveries set origin = 'test' where id = $1", one["id"])


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (delete_webhook, "webhook of this delivery was deleted"),
        (purge, "past the retention time"),
        (erase, "erased with a person's data"),
        (as_test, "send a new test instead"),
    ],
)
async def test_what_cannot_be_replayed_says_why(
    api: RestApi, ana: Person, prepare: Any, sentence: str
) -> None:
    await hook(api, ana)
    await contact(api, ana)
    [one] = await listed(ana)
    await prepare(api, ana, one)
    before = await count(api.db)
    for headers in ({}, {"Idempotency_Key": "k"}):
        reply = await ana.post(f"/api/deliveries/{one['id']}/replay", **headers)
        refused(reply, 409, "conflict")
        assert sentence in reply.body["error"]
    assert await count(api.db) == before
    # The delivery itself can be read as long as it is there.
    detail = await ana.get(f"/api/deliveries/{one['id']}")
    assert detail.status == 200
    assert answer_faults("GET", "/api/deliveries/{id}", 200, detail.body) == []
    assert (detail.body["body"] is None) is (prepare in (purge, erase))


async def count(db: Database) -> Sequence[int]:
    return [len(await db.read(rows, f"select id from {name}")) for name in ("deliveries", "audit")]
