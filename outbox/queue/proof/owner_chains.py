"""Verify the chains of one owner in several looks; a later look reads only what is new since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing

from outbox.database import index_plans
from outbox.database.exclusive import Exclusive
from outbox.database.ownership import OUTBOX, of_owner
from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row, Tx, Values
from outbox.queue.proof.attempt_proof import Judge
from outbox.queue.proof.chain_walk import (
    Chain,
    Fault,
    Key,
    attempts,
    begin,
    without_attempt,
    without_place,
)
from outbox.queue.state.chain import Head
from outbox.webhooks.secrets import KeyRing

PAGE = 200
MOST = 1_000
"""Rows outside of chains that a look reads."""
KEYS = """
select webhook_id, delivery_id, number from attempts
where owner_id = $1 and place is not null and ($2 = '' or webhook_id = $2)
order by webhook_id, place, delivery_id, number
"""
HEADS = f"""
select webhook_id, chain_place as place, chain_digest as digest from lanes
where owner_id = $1 and chain_place > 0
union all
select webhook_id, place, digest from chain_ends where {of_owner(OUTBOX, "chain_ends")}
"""
# Of the owner's attempts alone: another database began its chains at another time.
UNPLACED = """
select a.webhook_id, a.delivery_id, a.number from attempts a
join (
  select min(started_at) as at from attempts where owner_id = $1 and place is not null) as first
  on a.started_at > first.at
where a.owner_id = $1 and a.place is null order by a.webhook_id, a.delivery_id, a.number limit $2
"""
UNTOLD = """
select d.webhook_id, d.id as delivery_id, d.state from deliveries d
where d.owner_id = $1 and d.state in ('delivered', 'exhausted', 'gone')
  and not exists (
    select 1 from attempts a where a.delivery_id = d.id and (
      a.state = d.state
      or a.state is null and (d.state <> 'delivered' or a.outcome = 'success')))
order by d.webhook_id, d.id limit $2
"""


PLACES = f"""
select a.webhook_id, a.delivery_id, a.number, a.place from (
  select value ->> 0 as delivery, cast(value ->> 1 as bigint) as number from {ITEMS}) as s
join attempts a on a.delivery_id = s.delivery and a.number = s.number
where a.place is not null
"""


class OwnerChains:
    """The chains of one owner in one database; `ring` opens the secrets of signatures."""

    def __init__(self, owner_id: str, ring: KeyRing | None) -> None:
        self._owner_id = owner_id
        self._ring = ring
        self._judge = Judge()
        self._chains: dict[str, Chain] = {}
        self._is_begun = False
        self.checked = 0
        """How many attempts were read."""

    async def whole(self, database: Exclusive, tx: Tx, webhook_id: str = "") -> list[Fault]:
        """Verify all chains, or that of one webhook, and the attempts outside of them."""
        self._chains, self._is_begun = {}, True
        heads = await self._heads(tx, webhook_id)
        outside = [
            fault for fault in await self._outside(tx) if webhook_id in ("", fault.webhook_id)
        ]
        async with aclosing(database.rows(KEYS, self._owner_id, webhook_id)) as batches:
            async for batch in batches:
                # Set only after the statement that sorts all keys.
                await index_plans.by_index(tx)
                for start in range(0, len(batch), PAGE):
                    await self._take(tx, heads, batch[start : start + PAGE])
        faults = await self._end(tx, heads, set(heads).union(self._chains))
        faulty = {fault.webhook_id for fault in faults}
        return faults + [fault for fault in outside if fault.webhook_id not in faulty]

    async def since(self, database: Exclusive, tx: Tx, keys: Sequence[Key]) -> list[Fault]:
        """Verify what is behind the rows checked so far; `keys` are of attempts stored since.

        Without an earlier look it verifies all. A chain with a fault is not verified further.
        """
        if not self._is_begun:
            return await self.whole(database, tx)
        await index_plans.by_index(tx)
        heads = await self._heads(tx, "")
        grown = {webhook for webhook, head in heads.items() if not self._is_done(webhook, head)}
        for webhook in grown & set(self._chains):
            earlier = self._chains[webhook]
            self._chains[webhook] = await begin(tx.all, self._ring, webhook, heads[webhook])
            self._chains[webhook].go_on(earlier)
        places: list[Row] = []
        for start in range(0, len(keys), MOST):
            places += await tx.all(PLACES, items(keys[start : start + MOST]))
        new = [
            (row["webhook_id"], row["delivery_id"], row["number"])
            for row in sorted(places, key=lambda row: (row["webhook_id"], row["place"]))
            if row["webhook_id"] in grown and row["place"] > self._place(row["webhook_id"])
        ]
        for start in range(0, len(new), PAGE):
            await self._take(tx, heads, new[start : start + PAGE])
        return await self._end(tx, heads, grown)

    async def _take(self, tx: Tx, heads: Mapping[str, Head], keys: Sequence[Values]) -> None:
        """Check the next attempts, which are in the order of their chains."""
        found = await attempts(tx.all, [(delivery, number) for _, delivery, number in keys])
        self.checked += len(keys)
        for webhook, delivery, number in keys:
            if webhook not in self._chains:
                self._chains[webhook] = await begin(tx.all, self._ring, webhook, heads.get(webhook))
            key = {"delivery_id": delivery, "number": number}
            self._chains[webhook].take(key, found.get((delivery, number)), self._judge)

    async def _end(self, tx: Tx, heads: Mapping[str, Head], webhooks: Iterable[str]) -> list[Fault]:
        """Compare chains with their stored ends; return the faults that these have."""
        faults = []
        for webhook in sorted(webhooks):
            if webhook not in self._chains:
                self._chains[webhook] = await begin(tx.all, self._ring, webhook, heads[webhook])
            self._chains[webhook].end()
            fault = self._chains[webhook].fault
            if fault is not None:
                faults.append(fault)
        return faults

    async def _heads(self, tx: Tx, webhook_id: str) -> dict[str, Head]:
        return {
            row["webhook_id"]: (int(row["place"]), str(row["digest"]))
            for row in await tx.all(HEADS, self._owner_id)
            if webhook_id in ("", row["webhook_id"])
        }

    async def _outside(self, tx: Tx) -> list[Fault]:
        unplaced = await tx.all(UNPLACED, self._owner_id, MOST)
        untold = await tx.all(UNTOLD, self._owner_id, MOST)
        return [*map(without_place, unplaced), *map(without_attempt, untold)]

    def _place(self, webhook_id: str) -> int:
        return self._chains[webhook_id].place if webhook_id in self._chains else 0

    def _is_done(self, webhook_id: str, head: Head) -> bool:
        """Return whether a chain ends with what was checked last, or has a fault already."""
        chain = self._chains.get(webhook_id)
        if chain is None:
            return False
        return chain.fault is not None or (chain.place, chain.before.hex()) == head
