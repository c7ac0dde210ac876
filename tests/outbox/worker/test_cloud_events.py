"""Deliveries as CloudEvents, and the handshake before them, by a real worker to a real receiver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from aiohttp import web
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from standardwebhooks import Webhook

from outbox import webhooks
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.events import cloud_events
from outbox.ids import Ids
from outbox.queue.replays import replay
from outbox.sending.request import EventForm, Mode, Request, sign_body
from outbox.webhooks import Draft
from outbox.worker.certification.posts import Kit, Material, Specimen
from tests.outbox.worker.test_doctor import doctor, request
from tests.support.chains import walked
from tests.support.drain import OWNER, add_webhook, drain, inbox, make, make_many, ring, rows
from tests.support.receiver import Answer, Received

SITE = "https://crm.example"
ORIGIN = "WebHook-Allowed-Origin"
RATE = "WebHook-Allowed-Rate"


def answering(status: int = 200, headers: Mapping[str, str] = MappingProxyType({})) -> Answer:
    """Return an answer to OPTIONS with these headers; other requests get 200."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers) if asks(request) else web.Response()

    return answer


def asks(request: web.Request) -> bool:
    return request.method == "OPTIONS"


def questions(got: list[Received]) -> list[Received]:
    return [one for one in got if "X-Webhook-Id" not in one.headers]


async def test_a_delivery_and_its_replay_have_the_same_signed_bytes(
    db: Database, db_url: str
) -> None:
    keys = ring()
    async with inbox() as box, drain(db, keys, site=SITE) as running:
        _, secret = await add_webhook(
            db, keys, f"{box.url}/s", format="cloudevents", sequenced=True
        )
        await add_webhook(db, keys, f"{box.url}/b", format="cloudevents-binary")
        await add_webhook(db, keys, f"{box.url}/c")
        event_id = await db.write(make, "r1")
        await running.watch.until("delivery_finished", 3)
        for delivery in await db.read(rows, "select id from deliveries"):
            await db.write(replay.one, delivery["id"], "tester")
        await running.watch.until("delivery_finished", 6)
        for path in ("/s", "/b", "/c"):
            first, second = await box.until(2, path)
            assert first.body == second.body, path
        [structured, _], [binary, _] = await box.until(2, "/s"), await box.until(2, "/b")
        [contract, _] = await box.until(2, "/c")
        event = json.loads(structured.body)
        assert (event["id"], event["sequence"]) == (event_id, "1".zfill(19))
        assert event["source"] == f"{SITE}/owners/{OWNER}"
        assert event["data"] == json.loads(binary.body) == json.loads(contract.body)["data"]
        assert binary.headers["ce-id"] == event_id
        assert not [name for name in contract.headers if name.startswith("ce-")]
        assert structured.headers["X-Webhook-Signature"] == sign_body(secret, structured.body)
        Webhook(secret).verify(structured.body, structured.headers)
    verdict = await walked(db_url, keys)
    assert (verdict.faults, verdict.judge.signed) == ([], {"right": 6})


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"format": "cloudevents"}, "this server has no public address for CloudEvents"),
        ({"handshake": True}, "this server has no public address for handshakes"),
    ],
)
async def test_without_a_public_address_nothing_is_sent(
    db: Database, settings: dict[str, Any], reason: str
) -> None:
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url, **settings)
        await db.write(make, "r1")
        await running.watch.until("unreadable")
        [row] = await db.read(rows, "select unreadable from webhooks")
        assert (row["unreadable"], box.got) == (reason, [])


GRANTS: Mapping[str, tuple[Answer, int | None]] = {
    "any origin": (answering(headers={ORIGIN: "*"}), None),
    "any rate": (answering(headers={ORIGIN: "CRM.example", RATE: "*"}), None),
    "a rate": (answering(headers={ORIGIN: "crm.example", RATE: "120"}), 2_000),
    "a low rate": (answering(204, {ORIGIN: "a.example, crm.example", RATE: "1"}), 16),
    "any status": (answering(405, {ORIGIN: "*", RATE: "60"}), 1_000),
    "a huge rate": (answering(headers={ORIGIN: "*", RATE: "9" * 40}), 999_999_999 * 1_000 // 60),
}


@pytest.mark.parametrize("case", GRANTS)
async def test_a_receiver_that_allows_it_is_asked_once(db: Database, case: str) -> None:
    answer, rate = GRANTS[case]
    async with inbox(answer=answer) as box, drain(db, ring(), site=SITE) as running:
        await running.webhook(
            box.url, format="cloudevents-binary", handshake=True, headers=(("X-Key", "k"),)
        )
        await db.write(make_many, 2)
        await running.watch.until("delivery_finished", 1)
        [asked] = questions(box.got)
        named = {name.lower(): value for name, value in asked.headers.items()}
        assert (asked.body, named["webhook-request-origin"]) == (b"", "crm.example")
        assert named["x-key"] == "k"
        assert "webhook-request-rate" not in named
        sent = next(one for one in box.got if one is not asked)
        assert sent.headers["WebHook-Request-Origin"] == "crm.example"
        [lane] = await db.read(rows, "select rate from lanes")
        [webhook] = await db.read(rows, "select allowed_at, allowed_rate from webhooks")
        assert (lane["rate"], webhook["allowed_rate"]) == (rate, rate)
        assert webhook["allowed_at"] is not None
        if rate is None:
            await running.watch.until("delivery_finished", 2)
            assert len(questions(box.got)) == 1


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_the_lower_rate_holds_and_a_change_asks_again(db: Database) -> None:
    keys = ring()
    answer = answering(headers={ORIGIN: "*", RATE: "120"})
    async with inbox(answer=answer) as box, drain(db, keys, site=SITE) as running:
        webhook_id = await running.webhook(box.url, handshake=True, rate=500_000)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        assert questions(box.got)[0].headers["WebHook-Request-Rate"] == "30000"
        for rate, lower in ((500, 500), (900_000, 2_000)):
            version = (await db.read(rows, "select version from webhooks"))[0]["version"]
            draft = Draft(box.url, ("thing.made",), handshake=True, rate=rate)
            assert await db.write(webhooks.change, webhook_id, version, draft, keys)
            [row] = await db.read(rows, "select allowed_at from webhooks")
            assert row["allowed_at"] is None
            await db.write(make, f"r{rate}")
            await running.watch.until("delivery_finished", len(questions(box.got)) + 1)
            [lane] = await db.read(rows, "select rate from lanes")
            assert lane["rate"] == lower
        assert len(questions(box.got)) == 3


REFUSALS: Mapping[str, tuple[Answer, str]] = {
    "200 by itself": (answering(), "answered 200 to OPTIONS, and it has no WebHook-Allowed-Origin"),
    "405": (answering(405), "answered 405 to OPTIONS, and it has no WebHook-Allowed-Origin"),
    "another origin": (
        answering(headers={ORIGIN: "eventgrid.azure.net"}),
        "its WebHook-Allowed-Origin is eventgrid.azure.net",
    ),
    "an ending": (answering(headers={ORIGIN: "example"}), "its WebHook-Allowed-Origin is example"),
    **{
        f"rate {rate}": (
            answering(headers={ORIGIN: "*", RATE: rate}),
            f"its WebHook-Allowed-Rate is {rate}, neither * nor a whole number above 0",
        )
        for rate in ("0", "-1", "1.5", "1e3", "10/min", "10, 20")
    },
    "a redirect": (
        answering(307, {"Location": "/other"}),
        "answered 307 to OPTIONS, and it has no WebHook-Allowed-Origin",
    ),
}


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("case", REFUSALS)
async def test_a_receiver_that_refuses_gets_no_event(db: Database, case: str) -> None:
    answer, said = REFUSALS[case]
    async with inbox(answer=answer) as box, drain(db, ring(), site=SITE) as running:
        await running.webhook(box.url, format="cloudevents", handshake=True, schedule=())
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        assert questions(box.got) == box.got
        [attempt] = await db.read(rows, "select outcome, error, request_headers from attempts")
        assert attempt["outcome"] == "not_permitted"
        assert attempt["error"].startswith("the receiver does not allow requests from crm.example:")
        assert attempt["error"].endswith(said)
        assert attempt["request_headers"] == "[]"
        [row] = await db.read(rows, "select failures, allowed_at from webhooks")
        assert (row["failures"], row["allowed_at"]) == (1, None)


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("status", "outcome", "state"), [(410, "http_4xx", "disabled"), (503, "throttled", "active")]
)
async def test_gone_and_overloaded_receivers_are_so_for_a_handshake_too(
    db: Database, status: int, outcome: str, state: str
) -> None:
    async with inbox(answer=answering(status)) as box, drain(db, ring(), site=SITE) as running:
        await running.webhook(box.url, handshake=True, schedule=())
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        [attempt] = await db.read(rows, "select outcome, status from attempts")
        assert (attempt["outcome"], attempt["status"]) == (outcome, status)
        assert (await db.read(rows, "select state from webhooks"))[0]["state"] == state


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_retries_ask_again_until_the_receiver_allows_it(db: Database) -> None:
    async def answer(request: web.Request) -> web.Response:
        allowed = {ORIGIN: "*"} if len(questions(box.got)) > 2 else {}
        return web.Response(headers=allowed)

    async with inbox(answer=answer) as box, drain(db, ring(), site=SITE) as running:
        await running.webhook(box.url, handshake=True)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        found = [one["outcome"] for one in await db.read(rows, "select * from attempts")]
        assert found == ["not_permitted", "not_permitted", "success"]
        assert len(questions(box.got)) == 3


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_handshake_reaches_no_address_that_deliveries_do_not(db: Database) -> None:
    async with drain(db, ring(), site=SITE) as running:
        await running.webhook("http://10.1.2.3/hook", handshake=True, schedule=())
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        [attempt] = await db.read(rows, "select outcome from attempts")
        assert attempt["outcome"] == "blocked"


@pytest.mark.parametrize("mode", cloud_events.MODES)
@pytest.mark.parametrize("allowed", [True, False])
async def test_the_doctor_shows_the_handshake(mode: Mode, allowed: bool) -> None:
    answer = answering(headers={ORIGIN: "*", RATE: "30"} if allowed else {})
    async with inbox(answer=answer) as box, doctor() as checker:
        examination = await checker.examine(request_to(box.url, mode))
        names = [(step.name, step.verdict, step.code) for step in examination.steps[5:]]
        if allowed:
            assert names == [
                ("handshake", "passed", "permitted_rate"),
                ("answer", "passed", "answered"),
            ]
            assert examination.steps[5].values == {"rate": "0.5"}
        else:
            assert names == [("handshake", "failed", "failed")]
            assert (len(box.got), examination.headers) == (1, ())


@pytest.mark.parametrize("mode", cloud_events.MODES)
def test_a_certification_sends_the_form_of_the_webhook(mode: Mode) -> None:
    specimen = Specimen("thing.made", {"id": "r7", "name": "ã"})
    material = Material((specimen,), specimen, specimen)
    kit = Kit(request_to("https://x.example", mode), material, "Carteiro", SystemClock(), Ids())
    first = kit.post()
    again = kit.again(first, 2)
    for post in (first, again):
        event = from_http_event(HTTPMessage(dict(post.headers), post.body))
        assert (event.get_id(), event.get_subject()) == (first.event_id, "r7")
        assert event.get_data() == specimen.data
        Webhook(kit.secret).verify(post.body, dict(post.headers))


def request_to(url: str, mode: Mode) -> Request:
    """Return a request to a webhook with this format and a handshake."""
    form = EventForm(mode, cloud_events.source_of(SITE, OWNER))
    whole = request(url)
    cloud_events.apply(whole, form, "r1", 0)
    return replace(whole, asks_as="crm.example")
