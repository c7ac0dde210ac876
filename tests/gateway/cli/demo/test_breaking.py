"""The page that breaks the demo: who may, what each fault does, and what counts as lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from gateway.cli.demo import table
from gateway.cli.demo.breaking import acts
from gateway.cli.demo.breaking.acts import Scene
from gateway.cli.demo.breaking.break_page import BreakPage
from gateway.cli.demo.breaking.breaking_tour import broken
from gateway.cli.demo.breaking.moved_clock import MovedClock
from gateway.cli.demo.demo_gateway import Account, Gateway
from gateway.cli.demo.demo_goods import Owner
from gateway.cli.demo.demo_writer import Feed, Writer
from gateway.cli.demo.judgement import Judge
from gateway.cli.demo.receiver import Inbox, Receiver
from gateway.domain.webhooks import webhooks
from gateway.records.audit import Actor
from outbox.database.transaction import Tx
from outbox.durations import HOUR, SECOND
from outbox.ids import Ids
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from tests.support.drain import add_webhook, ring
from tests.support.rest import Person, RestApi
from tests.support.waiting import until

ACT = "/acts/freeze"
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene whose gateway is not started: the faults of its process have tests of their own."""
    clock = MovedClock(tmp_path / "clock")
    inboxes = [Inbox("ledger", ("contact.created",), "accepts all")]
    receiver = Receiver(inboxes, clock, clock.walls)
    port = await receiver.start()
    yield Scene(Gateway(tmp_path, port), receiver, clock, tmp_path / "carteiro.db")
    await receiver.stop()


@pytest.fixture
async def page(scene: Scene) -> AsyncIterator[BreakPage]:
    async with aiohttp.ClientSession() as http:
        writer = Writer(http, scene.gateway.url, "key", Ids(), patient=True)
        show = broken(scene, Feed(Owner(http, scene.gateway.url, "key"), writer), writer)
        page = BreakPage(show, Ids(), Account("demo@example.com", "secret"))
        await page.start()
        yield page
        await page.stop()


async def token_of(http: aiohttp.ClientSession) -> str:
    async with http.get("/") as answer:
        assert answer.status == 200
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        return (await answer.text()).partition('data-token="')[2].partition('"')[0]


async def test_only_the_page_itself_breaks_anything(page: BreakPage, scene: Scene) -> None:
    async with aiohttp.ClientSession(page.url) as http:
        token = await token_of(http)
        assert len(token) == 36
        right = JSON | {"X-Demo-Token": token}
        for headers, status in (
            (JSON, 403), (JSON | {"X-Demo-Token": token[:-1] + "!"}, 403),
            ({"X-Demo-Token": token, "Content-Type": "text/plain"}, 415),
            (right | {"Host": "evil.example"}, 403),
        ):  # fmt: skip
            async with http.post(ACT, data="{}", headers=headers) as answer:
                assert answer.status == status, headers
        async with http.get("/", headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
        async with http.post("/acts/none", data="{}", headers=right) as answer:
            assert answer.status == 404
        async with http.get("/ledger") as answer:
            assert (await answer.json())["acts"] == []
        async with http.post(ACT, data="{}", headers=right) as answer:
            assert answer.status == 202
        async with http.post(ACT, data="{}", headers=right) as answer:
            assert answer.status == 409
        async with http.get("/ledger") as answer:
            ledger = await answer.json()
        assert [entry["name"] for entry in ledger["acts"]] == ["freeze"]
        assert (ledger["busy"], ledger["lost"]) == (True, 0)


async def test_it_serves_nothing_else(page: BreakPage) -> None:
    async with aiohttp.ClientSession(page.url) as http:
        for path in ("/static/page.html", "/static/..%2Ftour.py", "/static/console.js", "/none"):
            async with http.get(path) as answer:
                assert answer.status == 404, path
        for path in ("/static/page.css", "/static/page.js", "/static/console.css"):
            async with http.get(path) as answer:
                assert answer.status == 200, path


async def test_a_frozen_receiver_accepts_nothing(scene: Scene) -> None:
    url = f"http://127.0.0.1:{scene.receiver.port}/ledger"
    async with aiohttp.ClientSession() as http:
        async with acts.frozen(scene):
            asked = asyncio.create_task(http.post(url, data=b"{}"))
            await scene.receiver.held.wait()
            assert not asked.done()
        with pytest.raises(aiohttp.ClientError):
            await asked
        async with http.post(url, data=b"{}") as answer:
            assert answer.status == 401
    assert scene.receiver.inboxes["ledger"].requests == 2


async def test_a_cut_database_takes_no_write(scene: Scene) -> None:
    with sqlite3.connect(scene.database) as made:
        made.execute("pragma journal_mode = wal")
        made.execute("create table t (n)")
    made.close()
    other = sqlite3.connect(scene.database, timeout=0, isolation_level=None)
    async with acts.locked(scene):
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("insert into t values (1)")
    other.execute("insert into t values (1)")
    other.close()


async def test_a_moved_clock_moves_in_every_process_and_alone(scene: Scene) -> None:
    other = MovedClock(scene.database.parent / "clock")
    before, boot = other.wall(), other.boot()
    async with acts.moved(scene):
        assert other.wall() - before >= 2 * HOUR
        assert other.boot() - boot < 60 * SECOND
        # A request that was signed before the move is still believed.
        ahead, old = scene.clock.walls()
        assert abs(ahead - old - 2 * HOUR) < SECOND
    assert other.wall() - before < HOUR


async def test_a_delivery_that_is_gone_is_lost(api: RestApi, ana: Person, scene: Scene) -> None:
    """The ledger says so when the gateway has said it three times: events may be on their way."""
    key = ana.headers["X-API-Key"]
    await add_webhook(
        api.db, ring(), "http://127.0.0.1:9/ledger", "contact.created", owner=ana.user_id
    )
    writer = Writer(api.site.http, api.site.url, key, Ids(), patient=True)
    show = broken(scene, Feed(Owner(api.site.http, api.site.url, key), writer), writer)
    await writer.write()
    lost = []
    for _ in range(3):
        await show.judge_missing()
        lost.append(show.ledger.told(up=True, possible=())["lost"])
    assert lost == [0, 0, 1]
    # Its fan-out was late.
    await api.db.write(fan_out, Capacity("node", "claim", 0, 0, 0, {}, 0))
    await show.judge_missing()
    told = show.ledger.told(up=True, possible=())
    assert (told["lost"], told["waiting"], told["written"]) == (0, 1, 1)


async def test_a_fault_that_cannot_be_made_is_told(page: BreakPage, scene: Scene) -> None:
    # Its folder is no database.
    scene.database.mkdir()
    async with aiohttp.ClientSession(page.url) as http:
        headers = JSON | {"X-Demo-Token": await token_of(http)}
        async with http.post("/acts/lock", data="{}", headers=headers) as answer:
            assert answer.status == 202

        async def failed() -> bool:
            async with http.get("/ledger") as answer:
                [entry] = (await answer.json())["acts"]
            return bool(entry["state"] == "failed")

        await until(failed)


async def test_what_the_owner_does_is_no_loss(api: RestApi, ana: Person) -> None:
    key = ana.headers["X-API-Key"]
    judge = Judge(Owner(api.site.http, api.site.url, key))
    box = Inbox("ledger", ("contact.created",), "accepts all")
    webhook_id, _ = await add_webhook(
        api.db, ring(), "http://127.0.0.1:9/ledger", "contact.created", owner=ana.user_id
    )
    record = (await ana.post("/api/contacts", {"name": "Bruno"})).body["id"]
    missing = table.missing([box], [("contact.created", record)])
    assert missing == [("ledger", "contact.created", record)]

    async def set_to(sql: str) -> None:
        async def unit(tx: Tx) -> None:
            await tx.run(sql)

        await api.db.write(unit)

    assert (await judge.judge(missing)).lost == missing, "no delivery was made yet"
    await api.db.write(fan_out, Capacity("node", "claim", 0, 0, 0, {}, 0))
    assert (await judge.judge(missing)).waiting == missing
    await set_to("update webhooks set state = 'paused'")
    assert (await judge.judge(missing)).kept_back == missing
    await set_to("update webhooks set state = 'active'")
    await set_to("update deliveries set state = 'cancelled', finished_at = 1")
    assert (await judge.judge(missing)).kept_back == missing
    await set_to("update deliveries set state = 'exhausted'")
    assert (await judge.judge(missing)).lost == missing
    await webhooks.delete(api.db, Actor(ana.user_id, "system"), webhook_id)
    assert (await judge.judge(missing)).kept_back == missing


async def test_an_event_that_was_sent_again_may_arrive_again(api: RestApi, ana: Person) -> None:
    key = ana.headers["X-API-Key"]
    judge = Judge(Owner(api.site.http, api.site.url, key))
    await add_webhook(
        api.db, ring(), "http://127.0.0.1:9/ledger", "contact.created", owner=ana.user_id
    )
    record = (await ana.post("/api/contacts", {"name": "Bruno"})).body["id"]
    await api.db.write(fan_out, Capacity("node", "claim", 0, 0, 0, {}, 0))
    [first] = (await ana.get("/api/deliveries")).body["data"]
    box = Inbox("ledger", ("contact.created",), "accepts all")
    box.arrived["contact.created", record] = first["eventId"]
    box.accepted[first["eventId"]] = 2
    expected = [("contact.created", record)]

    await judge.listed()

    async def faults() -> list[str]:
        return table.faults([box], expected, sent_again=await judge.sent_again([box]))

    assert [fault.endswith("arrived 2 times") for fault in await faults()] == [True]
    assert (await ana.post(f"/api/deliveries/{first['id']}/replay", None)).status == 202
    assert await faults() == []
    box.accepted[first["eventId"]] = 3
    assert len(await faults()) == 1
