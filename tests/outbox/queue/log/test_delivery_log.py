"""The log of a delivery, the health of its webhook, and the replay of a delivery."""

import pytest

from outbox.database.transaction import Database, Tx
from outbox.queue.log import delivery_log
from outbox.queue.replays import replay
from outbox.queue.upkeep import parking
from tests.outbox.queue.upkeep.test_parking import paused


async def test_what_cannot_be_replayed_says_why(db: Database) -> None:
    async def refusal(delivery_id: str) -> str:
        with pytest.raises(replay.NotReplayable) as refused:
            await db.write(replay.one, delivery_id, "u" * 24)
        return str(refused.value)

    async def run(tx: Tx, sql: str) -> None:
        await tx.run(sql)

    webhook_id = await paused(db, ("a", False), ("b", False))
    [b, a] = (await db.read(delivery_log.health, webhook_id)).latest
    assert "no longer" in await refusal("0" * 24)
    await db.write(run, f"update events set body = null, erased_at = 1 where id = '{a.event_id}'")
    assert "erased" in await refusal(a.id)
    await db.write(run, f"update deliveries set origin = 'test' where id = '{b.id}'")
    assert "test" in await refusal(b.id)
    await db.write(run, f"delete from events where id = '{b.event_id}'")
    assert "retention" in await refusal(b.id)
    assert await parking.remove(db, webhook_id)
    assert "deleted" in await refusal(b.id)
