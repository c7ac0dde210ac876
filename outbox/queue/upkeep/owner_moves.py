"""Move the queue of one owner to another database: whose he is, what rests, what is counted anew.

A row of `owners` says of an owner whether he is here (as without a row), leaving, or gone. While he
is leaving, his lanes wait for longer than anybody lives: nothing of him is claimed, and the rows
say by themselves what they waited for before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from outbox.database.transaction import Row, Tx
from outbox.queue.state import lanes

State = Literal["here", "leaving", "gone"]
Values = dict[str, Any]
"""One row by its columns."""
FAR = 2**61
"""Microseconds: added to a due time, it never comes."""

_OF = "select state, move_id, peer from owners where id = $1"
_SET = """
insert into owners (id, state, move_id, peer, changed_at) values ($1, $2, $3, $4, $5)
on conflict (id) do update set state = excluded.state, move_id = excluded.move_id,
  peer = excluded.peer, changed_at = excluded.changed_at
"""
_FORGET = "delete from owners where id = $1"
_ELSEWHERE = "select id from owners where state <> 'here'"
_HOLD = f"""
update lanes set wait_until = wait_until + {FAR}, due_at = due_at + {FAR}
where owner_id = $1 and wait_until < {FAR}
"""
_RELEASE = f"""
update lanes set wait_until = wait_until - {FAR}, due_at = due_at - {FAR}
where owner_id = $1 and wait_until >= {FAR}
"""
_UNSEEN = """
select exists (select 1 from events where owner_id = $1 and seq is null) as unseen,
  exists (select 1 from remainders where owner_id = $1) as more
"""
_SEQS = "select seq from events where owner_id = $1 order by seq"
_TAKE_SEQS = "update outbox_state set seq = seq + cast($1 as bigint) where id = 1 returning seq"
_DUE = "select due_now() as due"
_ERASURES = """
update erasures set upto_pos = (select coalesce(max(pos), 0) from events) where owner_id = $1
"""
_REST = f"update lanes set due_at = {lanes.DUE.format(wait_until='lanes.wait_until')}"


@dataclass(frozen=True, slots=True)
class Standing:
    """What a database says of an owner; `peer` is the address of the other one of his move."""

    state: State = "here"
    move_id: str = ""
    peer: str = ""


async def standing(tx: Tx, owner_id: str) -> Standing:
    """Return where an owner is, by this database."""
    row = await tx.one(_OF, owner_id)
    return Standing() if row is None else Standing(row["state"], row["move_id"], row["peer"])


async def stand(tx: Tx, owner_id: str, at: Standing) -> None:
    """Store where an owner is."""
    await tx.run(_SET, owner_id, at.state, at.move_id, at.peer, tx.now)


async def elsewhere(tx: Tx) -> frozenset[str]:
    """Return the owners who are leaving or gone."""
    return frozenset(row["id"] for row in await tx.all(_ELSEWHERE))


async def hold(tx: Tx, owner_id: str) -> None:
    """Let all lanes of an owner rest; again changes nothing."""
    await tx.run(_HOLD, owner_id)


async def stay(tx: Tx, owner_id: str) -> None:
    """Undo `hold`, and forget that the owner was leaving."""
    await tx.run(_RELEASE, owner_id)
    await tx.run(_FORGET, owner_id)


async def is_fanned_out(tx: Tx, owner_id: str) -> bool:
    """Return whether fan-out has seen all events of an owner."""
    row: Row | None = await tx.one(_UNSEEN, owner_id)
    return row is not None and not row["unseen"] and not row["more"]


async def settled_here(tx: Tx, owner_id: str) -> None:
    """Let the copied queue of an owner continue here."""
    await tx.run(_ERASURES, owner_id)
    await tx.run(f"{_REST} where owner_id = $1", owner_id)


@dataclass(frozen=True, slots=True)
class Passage:
    """What a queue's rows become in another database: the order stays, the numbers do not.

    `seqs` are those of the owner's events before; theirs here follow `last` without holes. `ahead`
    is how far the due clock here is ahead of the other one.
    """

    seqs: array[int]
    last: int
    due: int
    ahead: int

    def seq(self, before: int) -> int:
        """Return the number of the last event up to the number `before`."""
        return self.last + bisect_right(self.seqs, before)

    def change(self, table: str, row: Values) -> None:
        """Change one row for its new database."""
        change = CHANGES.get(table)
        if change is not None:
            change(self, row)


async def passage(source: Tx, target: Tx, owner_id: str) -> Passage:
    """Take numbers for an owner's events in the target, and compare the clocks."""
    seqs = array("q", [row["seq"] for row in await source.all(_SEQS, owner_id)])
    taken = await target.one(_TAKE_SEQS, len(seqs))
    there, here = await source.one(_DUE), await target.one(_DUE)
    assert taken is not None
    assert there is not None
    assert here is not None
    return Passage(seqs, int(taken["seq"]) - len(seqs), here["due"], here["due"] - there["due"])


def _event(passage: Passage, row: Values) -> None:
    row["seq"] = passage.seq(row["seq"])


def _webhook(passage: Passage, row: Values) -> None:
    # All events from before have their deliveries.
    row |= {"since_pos": 0, "since_snapshot": None}


def _lane(passage: Passage, row: Values) -> None:
    row["due_at"] = None
    if row["wait_until"] >= FAR:
        row["wait_until"] -= FAR
    for name in ("turned_at", "wait_until", "probe_at", "failing_from"):
        if row[name]:
            row[name] += passage.ahead


def _delivery(passage: Passage, row: Values) -> None:
    row["seq"] = passage.seq(row["seq"])
    if row["state"] == "in_flight":
        # The sender of the claim has ended, and it may have sent the request or not.
        row |= {
            "state": "ready", "retry": True, "claim": None, "node_id": None,
            "next_at": passage.due,
        }  # fmt: skip
    else:
        row["next_at"] += passage.ahead


def _job(passage: Passage, row: Values) -> None:
    row["last_seq"] = passage.seq(row["last_seq"])
    if row["kind"] != "snapshot":
        row["place"] = passage.seq(row["place"])


CHANGES: Mapping[str, Callable[[Passage, Values], None]] = {
    "events": _event,
    "webhooks": _webhook,
    "lanes": _lane,
    "deliveries": _delivery,
    "jobs": _job,
    "forgotten": _event,
    "erasures": _event,
}
"""The tables whose rows change on the way."""
