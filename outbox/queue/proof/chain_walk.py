"""Walk one chain of attempts, and find its first row that was changed or is missing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Row
from outbox.durations import DAY
from outbox.queue.proof.attempt_proof import Judge, Secrets, open_secrets
from outbox.queue.proof.witness import Noted
from outbox.queue.state.chain import COVERED, Head
from outbox.queue.state.chain_gaps import Gap, gap_of
from outbox.webhooks.secrets import KeyRing

SLACK = DAY
"""Tolerance for a clock that was ahead while attempts were made, in microseconds."""

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
GAPS = """
select webhook_id, first_place, last_place, digest from chain_gaps
where webhook_id = $1 order by first_place
"""
SECRETS = """
select id, secret, staged_secret, old_secret, secret_since, secret_place, created_at from webhooks
where id = $1
"""

Query = Callable[..., Awaitable[Sequence[Row]]]
"""Returns the rows of a statement with its arguments."""
Key = tuple[str, int]
"""The delivery and the number of an attempt."""


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

    @property
    def sentence(self) -> str:
        """What is wrong and where."""
        delivery = f"delivery {self.delivery_id}"
        attempt = delivery if self.number is None else f"attempt {self.number} of {delivery}"
        if self.place is None:
            return f"Webhook {self.webhook_id}, {attempt}: {self.what}."
        where = f"Webhook {self.webhook_id}, place {self.place}"
        if not self.missing:
            return f"{where}, {attempt}: {self.what}."
        return f"{where}{f', behind {attempt}' if self.delivery_id else ''}: {self.what}."


def without_place(row: Row) -> Fault:
    """Return the fault of an attempt that should be in a chain."""
    return Fault(
        row["webhook_id"], None, row["delivery_id"], row["number"], missing=False,
        what="it has no place, but others before it have one",
    )  # fmt: skip


def without_attempt(row: Row) -> Fault:
    """Return the fault of a delivery that ended, though no attempt ended it."""
    return Fault(
        row["webhook_id"], None, row["delivery_id"], None, missing=True,
        what=f"the delivery is {row['state']}, but no attempt says so",
    )  # fmt: skip


@dataclass
class Chain:
    """One chain, checked row by row up to its first fault; `place` and `before` are where it is."""

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

    def go_on(self, before: Chain) -> None:
        """Begin behind the rows that an earlier look has checked."""
        self.place, self.before, self.last = before.place, before.before, before.last
        self.gaps = [gap for gap in self.gaps if gap.last > self.place]
        if self.gaps and self.gaps[0].first <= self.place:
            # Retention has deleted rows that were checked, and some behind them.
            gap = self.gaps.pop(0)
            self.place, self.before = gap.last, gap.digest

    def take(self, key: Mapping[str, Any] | Row, row: Row | None, judge: Judge) -> None:
        """Check the next attempt."""
        if self.fault is not None:
            return
        if not self._pass_gaps(row):
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
        if (fault := judge.fault_of(row, self.before, self.secrets)) is not None:
            self._changed(row, fault)
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
        recent = any(self._is_recent(noted.at) for noted in self.noted)
        if self.head is None and not self.place and not recent:
            # Retention has deleted all of a deleted webhook.
            self.expired += len(self.noted)
        elif self.head is None:
            self._missing("the record of the chain's end is missing")
        elif self.head[0] > self.place or self.noted:
            self._missing("the row is missing")
        elif self.head != (self.place, self.before.hex()):
            self._missing("the rows do not end as the record of the chain's end")

    def _pass_gaps(self, behind: Row | None = None) -> bool:
        """Pass the gaps that follow, up to the row `behind` them; return whether they are right."""
        while self.gaps and self.gaps[0].first == self.place + 1:
            gap = self.gaps.pop(0)
            before = self.began if self.last is None else self.last["started_at"]
            self.place, self.before = gap.last, gap.digest
            if self._is_recent(before, behind):
                self._missing(
                    "the row is missing, and newer than what retention deletes", gap.first
                )
                return False
            while self.noted and self.noted[0].place <= gap.last:
                noted = self.noted.pop(0)
                if self._is_recent(noted.at, behind):
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

    def _is_recent(self, at: int | None, behind: Row | None = None) -> bool:
        """Return whether an attempt of this time is newer than what retention deletes.

        It is as old as the row behind it, whatever clock was ahead meanwhile.
        """
        if behind is not None and isinstance(behind["started_at"], int):
            at = None if at is None else min(at, behind["started_at"])
        return self.past is not None and at is not None and at > self.past + SLACK

    def _missing(self, what: str, place: int | None = None) -> None:
        delivery_id = None if self.last is None else self.last["delivery_id"]
        number = None if self.last is None else self.last["number"]
        self.fault = Fault(
            self.webhook_id, place or self.place + 1, delivery_id, number, missing=True, what=what
        )

    def _changed(self, row: Mapping[str, Any] | Row, what: str, place: int | None = None) -> None:
        self.fault = Fault(
            self.webhook_id, place or self.place + 1, row["delivery_id"], row["number"],
            missing=False, what=what,
        )  # fmt: skip


async def begin(
    query: Query,
    ring: KeyRing | None,
    webhook_id: str,
    head: Head | None,
    noted: Sequence[Noted] = (),
    past: int | None = None,
) -> Chain:
    """Return the chain of a webhook before its first row; `head` is its stored end."""
    gaps = [gap_of(row) for row in await query(GAPS, webhook_id)]
    webhooks = await query(SECRETS, webhook_id)
    secrets = open_secrets(webhooks[0], ring) if webhooks else None
    began = int(webhooks[0]["created_at"]) if webhooks else None
    return Chain(
        webhook_id=webhook_id,
        head=head,
        gaps=gaps,
        secrets=secrets,
        noted=list(noted),
        past=past,
        began=began,
    )


async def attempts(query: Query, keys: Sequence[Key]) -> dict[Key, Row]:
    """Return the attempts with these keys, each with its event and the state of its delivery."""
    return {(row["delivery_id"], row["number"]): row for row in await query(ROWS, items(keys))}
