"""The demo's reading of the events feed."""

from __future__ import annotations

import asyncio

from gateway.cli.demo.demo_goods import Owner
from gateway.cli.demo.demo_writer import Feed, Writer
from outbox.ids import Ids
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from tests.support.rest import Person, RestApi
from tests.support.waiting import HANG_SECONDS

ROOM = Capacity("node", "claim", 0, 0, 0, {}, 0)


async def test_events_that_the_feed_shows_late_are_read(api: RestApi, ana: Person) -> None:
    """An event is in the feed after its fan-out, which may follow long after its commit."""
    key = ana.headers["X-API-Key"]
    writer = Writer(api.site.http, api.site.url, key, Ids())
    feed = Feed(Owner(api.site.http, api.site.url, key), writer)
    bruno = (await ana.post("/api/contacts", {"name": "Bruno"})).body["id"]
    async with asyncio.timeout(HANG_SECONDS):
        reading = asyncio.create_task(feed.read_all())
        # Its own write is committed, and nothing has a place in the feed yet.
        while len(await api.events()) < 2:
            await asyncio.sleep(0)
        assert ("contact.created", bruno) not in writer.expected
        assert not reading.done()
        await api.db.write(fan_out, ROOM)
        await reading
    assert ("contact.created", bruno) in writer.expected
    assert len(writer.expected) == 2


async def test_the_writer_expects_each_event_once(api: RestApi) -> None:
    writer = Writer(api.site.http, api.site.url, "key", Ids())
    writer.hear([("deal.created", "a"), ("deal.created", "a"), ("deal.updated", "a")])
    writer.hear([("deal.updated", "a"), ("deal.created", "b")])
    assert writer.expected == [("deal.created", "a"), ("deal.updated", "a"), ("deal.created", "b")]
