"""Verify the chains of attempts in a snapshot, and find the first changed row of each.

The database sorts the keys of all attempts and streams them, and rows are read by key in small
pages: a log may be larger than the memory. It is one module because a chain, its gaps and its noted
ends are judged by one walk.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row
from outbox.database.transfer import Snapshot
from outbox.durations import DAY
from outbox.queue.proof.attempt_proof import Judge, Secrets, open_secrets
from outbox.queue.proof.witness import Noted
from outbox.queue.state.chain import COVERED, Head
from outbox.queue.state.chain_gaps import Gap, gap_of
from outbox.webhooks.secrets import KeyRing

PAGE = 200
MOST = 1_000
"""Rows without a place, and deliveries without their attempt, that a verification reads."""
SLACK = DAY
"""Tolerance for a clock that was ahead while attempts were made, in microseconds."""

KEYS = """
select webhook_id, delivery_id, number from attempts
where place is not null and ($1 = '' or webhook_id = $1)
order by webhook_id, place, delivery_id, number
"""
ROWS = f"""
select {", ".join(f"a.{name}" for name in COVERED)}, a.place, a.body_digest, a.digest,
  a.answer_digest, a.event_digest, a.state, e.id as kept, e.body,
  e.body_digest as event_body_digest, e.erased_at, e.name as event_name, e.record_id,
  e.record_version, e.occurred_at, d.state as delivery_state
from (
  select value ->> 0 as delivery, cast(value ->> 1 as bigint) as number from {ITEMS}) as s
join attempts a on a.delivery_id = s.delivery and a.number = s.number
left join events e on e.id = a.event_id
left join deliveries d on d.id = a.delivery_id
"""
# Also of chains whose rows are all deleted.
HEADS = """
select webhook_id, chain_place as place, chain_digest as digest from lanes
where chain_place > 0 and ($1 = '' or webhook_id = $1)
union all
select webhook_id, place, digest from chain_ends where $1 = '' or webhook_id = $1
"""
GAPS = """
select webhook_id, first_place, last_place, digest from chain_gaps
where webhook_id = $1 order by first_place
"""
OLDER = """
select count(*) as had from attempts where place is null and ($1 = '' or webhook_id = $1)
"""
SECRETS = """
select id, secret, staged_secret, old_secret, secret_since, secret_place, created_at from webhooks
where id = $1
"""
# Attempts that are older than all chains have no place; those of later deliveries have one.
UNPLACED = """
select a.webhook_id, a.delivery_id, a.number from attempts a
join (select min(started_at) as at from attempts where place is not null) as first
  on a.started_at > first.at
where a.place is null and ($1 = '' or a.webhook_id = $1)
union
select a.webhook_id, a.delivery_id, a.number from attempts a
join deliveries d on d.id = a.delivery_id
join (select min(started_at) as at from attempts where place is not null) as first
  on d.created_at > first.at
where a.place is null and ($1 = '' or a.webhook_id = $1)
order by webhook_id, delivery_id, number limit $2
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


@dataclass(frozen=True, slots=True)
class Fault:
    """The first row of a chain that was changed or is missing, or one that belongs to no chain.

    `delivery_id` and `number` are of the row, or of the last one before what is missing, if any.
    """

    webhook_id: str
    place: int | None
    delivery_id: str | None
    number: int | None
    missing: bool
    what: str


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


@dataclass
class _Chain:
    """One chain, checked row by row up to its first fault."""

    webhook_id: str
    head: Head | None
    gaps: list[Gap]
    secrets: Secrets | None
    noted: list[Noted] = field(default_factory=list)
    past: int | None = None
    began: int | None = None
    place: int = 0
    before: bytes = b""
    last: Row | None = None
    fault: Fault | None = None
    confirmed: int = 0
    expired: int = 0

    def take(self, key: Row, row: Row | None, judge: Judge) -> None:
        """Check the next attempt."""
        if self.fault is not None:
            return
        if not self._pass_gaps():
            return
        if row is None:
            self._changed(key, "its key is damaged")
            return
        if row["place"] != self.place + 1:
            if isinstance(row["place"], int) and row["place"] > self.place:
                self._missing("the row is missing")
            else:
                self._changed(row, "its place belongs to another row")
            return
        if (what := judge.fault_of(row, self.before, self.secrets)) is not None:
            self._changed(row, what)
            return
        self.place, self.before, self.last = row["place"], bytes(row["digest"]), row
        while self.noted and self.noted[0].place == self.place:
            if self.noted.pop(0).digest != self.before.hex():
                self._changed(row, "it is not the row that was noted", self.place)
                return
            self.confirmed += 1

    def end(self) -> None:
        """Compare the last row with the stored end of the chain."""
        if self.fault is not None:
            return
        if not self._pass_gaps():
            return
        if self.head is None and not self.place and not any(map(self._recent, self.noted)):
            # Retention has deleted all of a deleted webhook.
            self.expired += len(self.noted)
        elif self.head is None:
            self._missing("the record of the chain's end is missing")
        elif self.head[0] > self.place or self.noted:
            self._missing("the row is missing")
        elif self.head != (self.place, self.before.hex()):
            self._missing("the rows do not end as the record of the chain's end")

    def _pass_gaps(self) -> bool:
        """Pass the gaps that follow; return whether they are right."""
        while self.gaps and self.gaps[0].first == self.place + 1:
            gap = self.gaps.pop(0)
            newest = self.began if self.last is None else self.last["started_at"]
            self.place, self.before = gap.last, gap.digest
            if self.past is not None and newest is not None and newest > self.past + SLACK:
                self._missing(
                    "the row is missing, and newer than what retention deletes", gap.first
                )
                return False
            while self.noted and self.noted[0].place <= gap.last:
                noted = self.noted.pop(0)
                if self._recent(noted):
                    self._missing(
                        "the row is missing, and newer than what retention deletes", noted.place
                    )
                    return False
                if noted.place < gap.last:
                    self.expired += 1
                elif noted.digest != gap.digest.hex():
                    self._missing(
                        "the row that was noted is not the one that was deleted", gap.last
                    )
                    return False
                else:
                    self.confirmed += 1
        return True

    def _recent(self, noted: Noted) -> bool:
        """Return whether the noted attempt is newer than what retention deletes."""
        return self.past is not None and noted.at is not None and noted.at > self.past + SLACK

    def _missing(self, what: str, place: int | None = None) -> None:
        delivery_id = None if self.last is None else self.last["delivery_id"]
        number = None if self.last is None else self.last["number"]
        self.fault = Fault(
            self.webhook_id, place or self.place + 1, delivery_id, number, missing=True, what=what
        )

    def _changed(self, row: Row, what: str, place: int | None = None) -> None:
        self.fault = Fault(
            self.webhook_id, place or self.place + 1, row["delivery_id"], row["number"],
            missing=False, what=what,
        )  # fmt: skip


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
        one: ends for one, ends in (noted or {}).items() if not webhook_id or one == webhook_id
    }
    verdict = Verdict()
    for end in await source.query(HEADS, webhook_id):
        verdict.heads[end["webhook_id"]] = int(end["place"]), str(end["digest"])
    [older] = await source.query(OLDER, webhook_id)
    verdict.older = int(older["had"])
    unchained = await _unchained(source, webhook_id)
    unread = set(verdict.heads).union(noted)

    async def begin(one: str) -> _Chain:
        gaps = [gap_of(row) for row in await source.query(GAPS, one)]
        webhooks = await source.query(SECRETS, one)
        secrets = open_secrets(webhooks[0], ring) if webhooks else None
        began = int(webhooks[0]["created_at"]) if webhooks else None
        ends = list(noted.get(one, ()))
        return _Chain(one, verdict.heads.get(one), gaps, secrets, ends, past, began)

    chain: _Chain | None = None
    async with aclosing(_rows(source, webhook_id)) as pages:
        async for page in pages:
            for key, row in page:
                if chain is None or chain.webhook_id != key["webhook_id"]:
                    _note(verdict, chain)
                    unread.discard(key["webhook_id"])
                    chain = await begin(key["webhook_id"])
                chain.take(key, row, verdict.judge)
            verdict.attempts += len(page)
    _note(verdict, chain)
    for one in sorted(unread):
        _note(verdict, await begin(one))
    faulty = {fault.webhook_id for fault in verdict.faults}
    for fault in unchained:
        if fault.webhook_id not in faulty:
            faulty.add(fault.webhook_id)
            verdict.faults.append(fault)
    return verdict


async def _unchained(source: Snapshot, webhook_id: str) -> list[Fault]:
    """Return attempts without the place that they should have, and ends without an attempt."""
    return [
        Fault(row["webhook_id"], None, row["delivery_id"], row["number"], missing=False,
              what="it has no place, but others before it have one")
        for row in await source.query(UNPLACED, webhook_id, MOST)
    ] + [
        Fault(row["webhook_id"], None, row["delivery_id"], None, missing=True,
              what=f"the delivery is {row['state']}, but no attempt says so")
        for row in await source.query(UNTOLD, webhook_id, MOST)
    ]  # fmt: skip


def _note(verdict: Verdict, chain: _Chain | None) -> None:
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
            attempts = {
                (row["delivery_id"], row["number"]): row
                for row in await source.query(ROWS, items(ids))
            }
            yield [(key, attempts.get(one)) for key, one in zip(keys, ids, strict=True)]
