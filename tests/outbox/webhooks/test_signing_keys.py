"""The signing keys of the installation are replaced while its servers run."""

from __future__ import annotations

from outbox.database.leadership import Pace
from outbox.database.transaction import Database
from outbox.webhooks import signing_keys
from tests.support.drain import ring
from tests.support.waiting import until


async def test_keys_are_replaced_while_a_node_leads(db: Database) -> None:
    leadership = db.leadership(Pace(beat=0.2, silence=5.0))
    leadership.start()
    try:
        await until(lambda: leadership.leads, 20)
        made = [
            await db.write(signing_keys.rotate, ring(), bytes([number]) * 32) for number in (1, 2)
        ]
    finally:
        await leadership.stop()
    kept = await db.read(signing_keys.listed)
    assert [one.id for one in kept] == [one.id for one in reversed(made)]
