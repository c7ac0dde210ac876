"""The chains of one owner are verified in looks, each of which reads what is new."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from outbox.clock import SystemClock
from outbox.database import transfer_ends
from outbox.database.exclusive import Exclusive
from outbox.database.transaction import Database, Tx
from outbox.database.transfer import Place
from outbox.ids import Ids
from outbox.queue.proof.chain_walk import Fault, Key
from outbox.queue.proof.owner_chains import OwnerChains
from outbox.webhooks.secrets import KeyRing
from tests.support.chains import delivered
from tests.support.drain import OWNER
from tests.support.movers import opened

KEYS = "select delivery_id, number from attempts where owner_id = $1 order by webhook_id, place"
DAMAGE = "update attempts set url = 'http://other' where webhook_id = $1 and place = $2"
GAP = """
insert into chain_gaps (webhook_id, first_place, last_place, digest)
select webhook_id, 1, place, digest from attempts where webhook_id = $1 and place = $2
"""

DELETE = "delete from attempts where webhook_id = $1 and place <= $2"


@dataclass
class Log:
    """A log in a database that no server uses."""

    url: str
    keys: KeyRing
    webhooks: Sequence[str]

    async def more(self, records: int) -> None:
        """Deliver more, to more webhooks too."""
        db = await opened(self.url)
        _, webhooks = await delivered(db, records, urls=2, keys=self.keys)
        self.webhooks = [*self.webhooks, *webhooks]
        await db.close()


@asynccontextmanager
async def alone(url: str) -> AsyncIterator[tuple[Exclusive, Tx]]:
    async with (
        transfer_ends.exclusive(Place(url, SystemClock(), Ids())) as database,
        database.transaction() as tx,
    ):
        yield database, tx


async def known(url: str) -> list[Key]:
    async with alone(url) as (_, tx):
        return [(row["delivery_id"], row["number"]) for row in await tx.all(KEYS, OWNER)]


async def look(chains: OwnerChains, log: Log, keys: Sequence[Key] = ()) -> list[Fault]:
    async with alone(log.url) as (database, tx):
        return await chains.since(database, tx, keys)


async def changed(log: Log, *changes: tuple[Any, ...]) -> None:
    async with alone(log.url) as (_, tx):
        for sql, *args in changes:
            await tx.run(sql, *args)


@pytest.fixture
async def log(db: Database, db_url: str) -> Log:
    keys, webhooks = await delivered(db, 12, urls=2)
    await db.close()
    return Log(db_url, keys, webhooks)


@pytest.mark.slow
async def test_a_fault_behind_the_last_look(log: Log) -> None:
    chains, before = OwnerChains(OWNER, log.keys), set(await known(log.url))
    assert await look(chains, log) == []
    await log.more(6)
    webhook = log.webhooks[0]
    async with alone(log.url) as (_, tx):
        head = await tx.one("select chain_place from lanes where webhook_id = $1", webhook)
    assert head is not None
    await changed(log, (DAMAGE, webhook, head["chain_place"]))
    [fault] = await look(chains, log, [one for one in await known(log.url) if one not in before])
    assert (fault.webhook_id, fault.place) == (webhook, head["chain_place"])
    assert fault.sentence.startswith(f"Webhook {webhook}, place {fault.place}, attempt ")
    # A key that the look does not get is a missing row.
    again = OwnerChains(OWNER, log.keys)
    assert await look(again, log) == [fault]


@pytest.mark.slow
@pytest.mark.parametrize("place", [3, 14], ids=["checked", "new"])
async def test_retention_between_two_looks(log: Log, place: int) -> None:
    chains, webhook = OwnerChains(OWNER, log.keys), log.webhooks[0]
    assert await look(chains, log) == []
    await log.more(6)
    await changed(log, (GAP, webhook, place), (DELETE, webhook, place))
    assert await look(chains, log, await known(log.url)) == []
