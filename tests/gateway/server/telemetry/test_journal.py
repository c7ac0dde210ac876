"""The log lines of events and attempts: their ids, and their number per second."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from aiohttp import web

from gateway.server.app_keys import KEYRING
from gateway.server.config import Config, Logging
from outbox.database.transaction import Database
from tests.support.drain import add_webhook
from tests.support.log_lines import Lines
from tests.support.receiver import receiver
from tests.support.rest import UNLIMITED, RestApi
from tests.support.site import serving

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


async def test_above_its_number_lines_are_counted(db: Database, lines: Lines) -> None:
    await write(db, 3, 20, 200)
    shown = len(named(lines, "fanned_out")) + len(named(lines, "attempt"))
    omitted = named(lines, "lines_omitted")
    assert (
        shown
        + sum(line.get("fanned_out_lines", 0) + line.get("attempt_lines", 0) for line in omitted)
        == 40
    )
    assert 3 <= shown < 40
    assert len(named(lines, "request")) == 20


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


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_the_count_of_omitted_lines_comes_without_further_traffic(
    db: Database, lines: Lines
) -> None:
    async with receiver() as inbox, serving(db, configured(0), role="all") as site:
        ana = await RestApi(site).person()
        await add_webhook(db, site.app[KEYRING], inbox.url, "contact.created", owner=ana.user_id)
        await ana.post("/api/contacts", {"name": "Bia"})
        async with asyncio.timeout(20):
            while not (told := named(lines, "lines_omitted")):
                await asyncio.sleep(0.05)
    assert told[0]["fanned_out_lines"] == 1
