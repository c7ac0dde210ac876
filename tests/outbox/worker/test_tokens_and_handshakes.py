"""Webhooks with an access token, a form of CloudEvents and a handshake at once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from outbox.database.transaction import Database
from tests.outbox.worker.test_cloud_events import ORIGIN, SITE, questions
from tests.support.authorization_server import Issuer, issuer
from tests.support.chains import walked
from tests.support.drain import add_webhook, drain, make, make_many, ring, rows
from tests.support.receiver import Receiver, receiver


@asynccontextmanager
async def guarded() -> AsyncIterator[tuple[Issuer, Receiver]]:
    """Run an authorisation server, and a receiver that demands its tokens of a handshake, too."""
    async with issuer() as (server, _):

        async def answer(request: web.Request) -> web.StreamResponse:
            found = await server.protect(request)
            if request.method == "OPTIONS" and found.status == 204:
                found.headers[ORIGIN] = "crm.example"
            return found

        async with receiver(answer=answer) as box:
            yield server, box


@pytest.mark.parametrize("ordered", [False, True])
async def test_all_at_once(db: Database, db_url: str, ordered: bool) -> None:
    """A revoked token is replaced before the handshake is repeated, and no try is counted."""
    keys = ring()
    async with guarded() as (server, box), drain(db, keys, site=SITE) as running:
        _, secret = await add_webhook(
            db, keys, box.url, oauth2=server.credentials(), format="cloudevents", handshake=True,
            ordered=ordered, sequenced=ordered,
        )  # fmt: skip
        await db.write(make_many, 20)
        await running.watch.until("delivery_finished", 20)
        assert (len(server.requests), len(questions(box.got)), len(box.got)) == (1, 1, 21)
        for one in box.got[1:]:
            Webhook(secret).verify(one.body, one.headers)
            assert json.loads(one.body)["type"] == "carteiro.thing.made"
        server.valid.clear()
        running.worker._sends._permissions._until.clear()
        await db.write(make, "later")
        await running.watch.until("delivery_finished", 21)
        assert (len(server.requests), len(questions(box.got))) == (2, 3)
        found = await db.read(
            rows, "select outcome, status, tries from attempts join deliveries d"
            " on d.id = delivery_id where record_id = 'later' order by number",
        )  # fmt: skip
        assert [(one["outcome"], one["status"], one["tries"]) for one in found] == [
            ("not_permitted", 401, 1), ("success", 204, 1),
        ]  # fmt: skip
        [webhook] = await db.read(rows, "select failures, allowed_at from webhooks")
        assert (webhook["failures"], webhook["allowed_at"] is not None) == (0, True)
    verdict = await walked(db_url, keys)
    assert (verdict.faults, verdict.judge.signed) == ([], {"right": 21, "unsent": 1})
