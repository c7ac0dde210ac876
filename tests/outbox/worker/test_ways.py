"""The way of a webhook's requests from its settings to the receiver: its proxy."""

from __future__ import annotations

from dataclasses import replace

from outbox.database.transaction import Database
from outbox.sending.egress_guard import Guard
from outbox.sending.proxies import parse_proxy
from tests.support.connect_proxy import connect_proxy
from tests.support.drain import RULES, drain, inbox, make, ring, rows


async def test_a_proxy_that_fails_is_named_and_is_no_failure_of_the_webhook(db: Database) -> None:
    async with connect_proxy(b"HTTP/1.1 403 No\r\n\r\n") as proxy, inbox() as box:
        office = parse_proxy("office", f"http://ana:hunter2@127.0.0.1:{proxy.port}")
        guard = Guard(replace(RULES, proxies={"office": office}), db.clock)
        async with drain(db, ring(), guard=guard) as running:
            await running.webhook(box.url, proxy="office", schedule=())
            await db.write(make, "r1")
            await running.watch.until("delivery_finished")
        await guard.close()
        [attempt] = await db.read(rows, "select * from attempts")
        assert (attempt["outcome"], box.got) == ("proxy_error", [])
        assert attempt["error"] == "the proxy office does not allow this receiver (403)"
        assert "hunter2" not in repr(dict(attempt))
        [webhook] = await db.read(rows, "select failures, failing_since from webhooks")
        assert (webhook["failures"], webhook["failing_since"]) == (0, None)
