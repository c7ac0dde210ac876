"""Verify the chains of attempts in a snapshot, and find the first changed row of each.

The database sorts the keys of all attempts and streams them, and rows are read by key in small
pages: a log may be larger than the memory.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from outbox.database.transaction import Row
from outbox.database.transfer import Snapshot
from outbox.queue.proof.attempt_proof import Judge
from outbox.queue.proof.chain_walk import (
    Chain,
    Fault,
    attempts,
    begin,
    without_attempt,
    without_place,
)
from outbox.queue.proof.witness import Noted
from outbox.queue.state.chain import Head
from outbox.webhooks.secrets import KeyRing

PAGE = 200
MOST = 1_000
"""Rows without a place, and deliveries without their attempt, that a verification reads."""

KEYS = """
select webhook_id, delivery_id, number from attempts
where place is not null and ($1 = '' or webhook_id = $1)
order by webhook_id, place, delivery_id, number
"""
# Also of chains whose rows are all deleted.
HEADS = """
select webhook_id, chain_place as place, chain_digest as digest from lanes
where chain_place > 0 and ($1 = '' or webhook_id = $1)
union all
select webhook_id, place, digest from chain_ends where $1 = '' or webhook_id = $1
"""
OLDER = """
select count(*) as had from attempts where place is null and ($1 = '' or webhook_id = $1)
"""
# Attempts that are older than all chains have no place; those of later deliveries have one. An
# owner who came from another database has his own first place: that one began at another time.
UNPLACED = """
with firsts as (
  select coalesce(o.id, '') as owner_id, min(a.started_at) as at
  from attempts a left join owners o on o.id = a.owner_id and o.state = 'here'
  where a.place is not null group by coalesce(o.id, ''))
select a.webhook_id, a.delivery_id, a.number from attempts a
left join owners o on o.id = a.owner_id and o.state = 'here'
left join deliveries d on d.id = a.delivery_id
join firsts f on f.owner_id = coalesce(o.id, '') and (a.started_at > f.at or d.created_at > f.at)
where a.place is null and ($1 = '' or a.webhook_id = $1)
order by a.webhook_id, a.delivery_id, a.number limit $2
"""
# An attempt ends these; before migration 0021 it did not store the end.
UNTOLD = """
select d.webhook_id, d.id as delivery_id, d.state from deliveries d
where d.state in ('delivered', 'exhausted', 'gone') and ($1 = '' or d.webhook_id = $1)
  and not exists (
    select 1 from attempts a where a.delivery_id = d.id and (
      a.state = d.state
      or a.state is null and (d.state <> 'delivered' or a.outcome = 'success')))
order by d.webhook_id, d.id limit $2
"""


@dataclass
class Verdict:
    """The result of a verification; `older` counts attempts from before there were chains.

    `confirmed` counts noted ends that are as noted, `expired` those that retention has deleted.
    """

    attempts: int = 0
    older: int = 0
    confirmed: int = 0
    expired: int = 0
    heads: dict[str, Head] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    judge: Judge = field(default_factory=Judge)


async def verify(
    source: Snapshot,
    ring: KeyRing | None,
    webhook_id: str = "",
    noted: Mapping[str, Sequence[Noted]] | None = None,
    past: int | None = None,
) -> Verdict:
    """Verify the chains of all webhooks, or of one; `ring` opens the secrets of signatures.

    `noted` are places and digests that chains must have, by webhook and in the order of places.
    Retention deletes what ended before `past`, in microseconds UTC: it did not leave a gap behind a
    newer row.
    """
    noted = {
        webhook: ends
        for webhook, ends in (noted or {}).items()
        if not webhook_id or webhook == webhook_id
    }
    verdict = Verdict()
    for end in await source.query(HEADS, webhook_id):
        verdict.heads[end["webhook_id"]] = int(end["place"]), str(end["digest"])
    [older] = await source.query(OLDER, webhook_id)
    verdict.older = int(older["had"])
    unchained = await _unchained(source, webhook_id)
    unread = set(verdict.heads).union(noted)

    async def began(webhook: str) -> Chain:
        return await begin(
            source.query, ring, webhook, verdict.heads.get(webhook), noted.get(webhook, ()), past
        )

    chain: Chain | None = None
    async with aclosing(_rows(source, webhook_id)) as pages:
        async for page in pages:
            for key, row in page:
                if chain is None or chain.webhook_id != key["webhook_id"]:
                    _note(verdict, chain)
                    unread.discard(key["webhook_id"])
                    chain = await began(key["webhook_id"])
                chain.take(key, row, verdict.judge)
            verdict.attempts += len(page)
    _note(verdict, chain)
    for webhook in sorted(unread):
        _note(verdict, await began(webhook))
    faulty = {fault.webhook_id for fault in verdict.faults}
    for fault in unchained:
        if fault.webhook_id not in faulty:
            faulty.add(fault.webhook_id)
            verdict.faults.append(fault)
    return verdict


async def _unchained(source: Snapshot, webhook_id: str) -> list[Fault]:
    """Return attempts without the place that they should have, and ends without an attempt."""
    unplaced = await source.query(UNPLACED, webhook_id, MOST)
    untold = await source.query(UNTOLD, webhook_id, MOST)
    return [*map(without_place, unplaced), *map(without_attempt, untold)]


def _note(verdict: Verdict, chain: Chain | None) -> None:
    if chain is not None:
        chain.end()
        verdict.confirmed += chain.confirmed
        verdict.expired += chain.expired
        if chain.fault is not None:
            verdict.faults.append(chain.fault)


async def _rows(
    source: Snapshot, webhook_id: str
) -> AsyncGenerator[Sequence[tuple[Row, Row | None]], None]:
    """Return the keys of all attempts in the order of their chains, in pages.

    Each comes with the attempt and its event; with None when its key is too damaged to find it.
    """
    async with aclosing(source.stream(KEYS, PAGE, webhook_id)) as pages:
        async for keys in pages:
            # Set only after the statement that sorts the whole table.
            await source.by_index()
            ids = [(key["delivery_id"], key["number"]) for key in keys]
            by_id = await attempts(source.query, ids)
            yield [(key, by_id.get(attempt_id)) for key, attempt_id in zip(keys, ids, strict=True)]
