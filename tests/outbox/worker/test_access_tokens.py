"""Deliveries to receivers that want an access token, with a real authorisation server."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from outbox import webhooks
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.queue.upkeep import parking
from outbox.sending.client_credentials import ClientCredentials
from outbox.sending.outcome import Outcome
from outbox.sending.request import Request
from outbox.webhooks import Draft
from outbox.worker.access_tokens import AccessTokens
from tests.support.authorization_server import issuer
from tests.support.drain import Drain, drain, make, make_many, ring, rows, run
from tests.support.waiting import until


class Clock(SystemClock):
    """A clock that the test moves."""

    now = 1_000.0

    def monotonic(self) -> float:
        return self.now


ONE_ENGINE = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


async def attempts(db: Database) -> list[dict[str, Any]]:
    found = """select a.*, d.tries, d.state as ended from attempts a
        join deliveries d on d.id = a.delivery_id order by a.started_at, a.number"""
    return [dict(one) for one in await db.read(rows, found)]


async def test_200_deliveries_at_once_need_one_token_request(db: Database) -> None:
    async with issuer() as (server, box), drain(db, ring()) as running:
        await running.webhook(box.url, oauth2=server.credentials(scope="a b"))
        await db.write(make_many, 200)
        await running.watch.until("delivery_finished", 200)
    assert (len(server.requests), len(box.got)) == (1, 200)
    assert {one.headers["Authorization"] for one in box.got} == server.valid
    assert server.requests[0].body == b"grant_type=client_credentials&scope=a+b"
    stored = repr([dict(one) for one in await db.read(rows, "select * from attempts")])
    for secret in (server.client_secret, *(one.partition(" ")[2] for one in server.valid)):
        assert secret not in stored
    assert '["Authorization","***"]' in stored


async def test_a_revoked_token_is_replaced_and_the_attempt_does_not_count(db: Database) -> None:
    async with issuer() as (server, box), drain(db, ring()) as running:
        await running.webhook(box.url, oauth2=server.credentials(client_authentication="body"))
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
        server.valid.clear()
        await db.write(make_many, 20)
        await running.watch.until("delivery_finished", 21)
    assert len(server.requests) == 2
    found = await attempts(db)
    assert Counter(one["status"] for one in found)[204] == 21
    refused = [one for one in found if one["status"] == 401]
    assert refused
    assert {one["error"] for one in refused} == {
        "it refused the access token, so the request is sent again with a new one"
    }
    assert {(one["tries"], one["ended"]) for one in found} == {(1, "delivered")}
    [webhook] = await db.read(rows, "select failures, failing_since from webhooks")
    assert (webhook["failures"], webhook["failing_since"]) == (0, None)


@ONE_ENGINE
async def test_a_second_refusal_is_an_ordinary_failure(db: Database) -> None:
    async with issuer() as (server, box), drain(db, ring()) as running:
        server.valid = set()
        server.save_token = lambda token, request: None  # type: ignore[method-assign]
        await running.webhook(box.url, oauth2=server.credentials(), schedule=())
        await db.write(make, "r1")
        await running.watch.until("delivery_finished")
    first, second = await attempts(db)
    assert (first["error"] is None, second["error"], second["ended"]) == (False, None, "exhausted")
    assert (second["tries"], len(server.requests)) == (1, 2)


@pytest.mark.slow
@ONE_ENGINE
async def test_a_token_is_renewed_before_its_end_while_it_is_used(db: Database) -> None:
    async with issuer(expires_in=2) as (server, box), drain(db, ring()) as running:
        await running.webhook(box.url, oauth2=server.credentials())

        async def renewed() -> bool:
            await db.write(make, "r1")
            await running.watch.until("delivery_finished", len(box.got) + 1)
            return len(server.requests) > 2

        await until(renewed)
    assert {one["status"] for one in await attempts(db)} == {204}


@ONE_ENGINE
async def test_a_failing_endpoint_is_the_failure_of_its_webhook(db: Database) -> None:
    async def sleepy(request: web.Request) -> web.StreamResponse:
        return web.json_response(
            {"error": "slow_down", "error_description": f"not {server.client_secret}"},
            status=429, headers={"Retry-After": "100"},
        )  # fmt: skip

    async with issuer(answer=sleepy) as (server, box), drain(db, ring()) as running:
        failing = await running.webhook(box.url, oauth2=server.credentials())
        await db.write(make, "r1")
        await until(lambda: _has_attempt(db))
        [attempt] = await attempts(db)
        assert (attempt["outcome"], attempt["status"]) == ("token_error", None)
        assert attempt["error"] == "the token endpoint answered 429: slow_down: not ***"
        assert json.loads(attempt["request_headers"] or "[]") == []
        held = "select wait_until - due_now() > 50000000 as held, w.failures from lanes l"
        [lane] = await db.read(
            rows, f"{held} join webhooks w on w.id = l.webhook_id where w.id = $1", failing
        )
        assert (bool(lane["held"]), lane["failures"]) == (True, 1), "Retry-After holds the webhook"
    assert box.got == []


@pytest.mark.slow
@ONE_ENGINE
async def test_what_is_no_token_endpoint_sends_nothing(db: Database) -> None:
    """One that hangs, sends on to a private address, answers with a page, is not allowed."""
    never = asyncio.Event()

    async def odd(request: web.Request) -> web.StreamResponse:
        if request.path == "/hangs":
            await never.wait()
        if request.path == "/redirects":
            return web.Response(status=307, headers={"Location": f"{server.box.url}/token"})
        if request.path == "/flood":
            return web.Response(body=b"[" * 1_000_000)
        return web.Response(text="<html><title>Welcome</title></html>", content_type="text/html")

    expected = {
        "/hangs": "failed: no response in time",
        "/redirects": "answered 307, a redirect, which is not followed",
        "/flood": "answered 200 with an answer that is cut off",
        "/page": "answered 200 with no JSON object: a page with the title “Welcome”",
        "http://10.0.0.1/token": "failed: deliveries to this address are not allowed",
    }
    async with issuer(answer=odd) as (server, box), drain(db, ring()) as running:
        for path in expected:
            url = path if "//" in path else server.box.url + path
            credentials = replace(server.credentials(), token_url=url)
            timeout = 1_000 if path == "/hangs" else None
            await running.webhook(box.url, oauth2=credentials, schedule=(), timeout_ms=timeout)
        await db.write(make, "r1")
        await running.watch.until("delivery_finished", len(expected))
        errors = sorted(str(one["error"]) for one in await attempts(db))
        assert sorted(f"the token endpoint {says}" for says in expected.values()) == [
            error.partition("; ")[0] for error in errors
        ]
        assert not any(one.path == "/token" for one in server.requests)
        assert running.worker._sends._tokens._tasks == set()
    assert box.got == []


async def test_a_repeated_delivery_gets_a_young_token_from_any_node() -> None:
    """The attempt before may have been that of another process, with an older token."""
    clock = Clock()

    class Endpoint:
        sent = 0

        async def send(self, *_: Any, **__: Any) -> Outcome:
            self.sent += 1
            body = b'{"access_token":"t%d"}' % self.sent
            return Outcome(outcome="success", status=200, total_us=1, response_body=body)

    endpoint = Endpoint()
    tokens = AccessTokens(endpoint, clock, "Carteiro")  # type: ignore[arg-type] # its one method
    credentials = ClientCredentials("https://login.example/t", "crm", "hush")
    for repeated, later, token in (
        (False, 0, 1), (True, 59, 1), (False, 2, 1), (True, 0, 2), (False, 3600, 3),
    ):  # fmt: skip
        clock.now += later
        request = Request(
            "e", "thing.made", 0, 1, 1, "event", "https://x", b"", ("whsec_",), oauth2=credentials
        )
        assert await tokens.authorize("w", request, repeated=repeated) is None
        assert request.headers == (("Authorization", f"Bearer t{token}"),)
    await tokens.close()


async def _has_attempt(db: Database) -> bool:
    return bool(await db.read(rows, "select 1 as one from attempts"))


async def test_a_change_a_pause_and_a_deletion_forget_the_token(db: Database) -> None:
    async with issuer() as (server, box), drain(db, ring()) as running:
        webhook_id = await running.webhook(box.url, oauth2=server.credentials())

        async def delivered() -> int:
            await db.write(make, "r1")
            await box.until(len(box.got) + 1)
            return len(server.requests)

        assert [await delivered(), await delivered()] == [1, 1]
        changed = Draft(box.url, ("thing.made",), oauth2=server.credentials(audience="crm"))
        assert await db.write(webhooks.change, webhook_id, 1, changed, running.ring)
        assert await delivered() == 2
        assert b"audience=crm" in server.requests[1].body
        await db.write(parking.pause, webhook_id)
        await parking.activate(db, webhook_id, "none")
        assert await delivered() == 3
        assert _kept(running) == [webhook_id]
        await parking.remove(db, webhook_id)
        assert _kept(running) == []


def _kept(running: Drain) -> list[str]:
    return [*running.worker._sends._tokens._entries]


@ONE_ENGINE
async def test_credentials_that_no_key_opens_hold_the_webhook(db: Database) -> None:
    async with issuer() as (server, box), drain(db, ring()) as running:
        await running.webhook(box.url, oauth2=server.credentials())
        await db.write(run, "update webhooks set oauth2 = $1", bytes(40))
        await db.write(make, "r1")
        await running.watch.until("unreadable")
        [row] = await db.read(rows, "select unreadable from webhooks")
        assert row["unreadable"].startswith("the webhook's OAuth2 settings cannot be decrypted")
    assert (box.got, server.requests) == ([], [])
