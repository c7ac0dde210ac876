"""The log lines of events and attempts: their ids, and their number per second."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from aiohttp import web

from gateway.server.app_keys import KEYRING
from gateway.server.config import Config, Logging
from outbox.database.transaction import Database
from tests.architecture.tree import ROOT
from tests.support.drain import add_webhook
from tests.support.log_lines import Lines
from tests.support.receiver import receiver
from tests.support.rest import UNLIMITED, RestApi
from tests.support.site import serving
from tests.support.waiting import until

LOCAL = msgspec.convert({"egress": {"allow_http": True, "allow": ["127.0.0.0/8"]}}, Config)


def configured(per_second: int) -> Config:
    return msgspec.structs.replace(
        UNLIMITED, egress=LOCAL.egress, logging=Logging(deliveries_per_second=per_second)
    )


async def write(
    db: Database, per_second: int, writes: int, status: int, webhooks: int = 1
) -> list[dict[str, str]]:
    """Send that many writes; return the headers that the receiver got, and `request` of each."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status)

    async with receiver(answer=answer) as inbox:
        async with serving(db, configured(per_second), role="all") as site:
            ana = await RestApi(site).person()
            for _ in range(webhooks):
                await add_webhook(
                    db, site.app[KEYRING], f"{inbox.url}/hook", "contact.created",
                    owner=ana.user_id,
                )  # fmt: skip
            for number in range(writes):
                reply = await ana.call(
                    "POST", "/api/contacts", {"name": "Bia"}, X_Request_Id=f"search-{number}"
                )
                assert reply.status == 201
            await inbox.wait(writes * webhooks)
        return [dict(request.headers) for request in inbox.requests]


def named(lines: Lines, event: str) -> list[dict[str, Any]]:
    told = [json.loads(line) for line in lines.raw]
    return [line for line in told if line["event"] == event]


@pytest.mark.slow
async def test_one_search_finds_the_write_the_event_and_what_the_receiver_saw(
    db: Database, lines: Lines
) -> None:
    seen = await write(db, 1_000, 1, 200, webhooks=2)
    found = [json.loads(line) for line in lines.raw if b'"search-0"' in line]
    assert sorted(line["event"] for line in found) == [
        "attempt", "attempt", "fanned_out", "request",
    ]  # fmt: skip
    [request] = [line for line in found if line["event"] == "request"]
    assert {line["trace_id"] for line in found} == {request["trace_id"]}
    [event] = [line for line in found if line["event"] == "fanned_out"]
    assert (event["event_name"], event["deliveries"]) == ("contact.created", 2)
    attempts = [line for line in found if line["event"] == "attempt"]
    assert {(line["event_id"], line["span_id"]) for line in attempts} == {
        (headers["webhook-id"], headers["traceparent"].split("-")[2]) for headers in seen
    }
    assert {headers["traceparent"].split("-")[1] for headers in seen} == {request["trace_id"]}
    assert len({line["webhook_id"] for line in attempts}) == 2
    assert {(line["outcome"], line["status"], line["state"]) for line in attempts} == {
        ("success", 200, "delivered")
    }
    # The page shows the fields that there are.
    text = (ROOT / "docs/how-to/tracing.md").read_text()
    told = [json.loads(line) for line in text.splitlines() if line.startswith('{"ts"')]
    assert [line["event"] for line in told] == ["request", "fanned_out", "attempt", "attempt"]
    for line in told[0], told[1], told[3]:
        assert list(named(lines, line["event"])[-1]) == list(line)


async def test_failed_attempts_are_always_logged(db: Database, lines: Lines) -> None:
    await write(db, 0, 5, 500)
    assert named(lines, "fanned_out") == []
    attempts = [line for line in named(lines, "attempt") if line["attempt"] == 1]
    assert {line["request_id"] for line in attempts} == {f"search-{n}" for n in range(5)}
    assert len(attempts) == 5
    assert {(line["outcome"], line["status"], line["state"]) for line in attempts} == {
        ("http_5xx", 500, "ready")
    }
    assert all(line["next_attempt_at"] > line["ts"] for line in attempts)


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_the_count_of_omitted_lines_comes_without_further_traffic(
    db: Database, lines: Lines
) -> None:
    async with receiver() as inbox, serving(db, configured(0), role="all") as site:
        ana = await RestApi(site).person()
        await add_webhook(db, site.app[KEYRING], inbox.url, "contact.created", owner=ana.user_id)
        await ana.post("/api/contacts", {"name": "Bia"})
        await until(lambda: bool(named(lines, "lines_omitted")))
    assert named(lines, "lines_omitted")[0]["fanned_out_lines"] == 1
