"""Move the queue of one owner to another database: whose he is, what rests, what is counted anew.

A row of `owners` says of an owner whether he is here (as without a row), leaving, or gone. While he
is leaving, his lanes wait for longer than anybody lives: nothing of him is claimed, and the rows
say by themselves what they waited for before.

A move between servers that run has three more states. In the source he is first copying, while he
uses it as always, then resting: his records accept no writes, and the last requests of his webhooks
settle. In the target he is arriving.

It is one module because both kinds of moves hold, number and release the same rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from outbox.database.sql import insert, items
from outbox.database.transaction import Row, Tx
from outbox.queue.state import deleted_webhooks, lanes

State = Literal["here", "copying", "resting", "leaving", "gone", "arriving"]
Values = dict[str, Any]  # One row by its columns.
FAR = 2**61
"""Microseconds: added to a due time, it never comes."""

_SENT = "owner_id = $1 and state = 'in_flight'"
_OF = "select state, move_id, peer from owners where id = $1"
_SET = """
insert into owners (id, state, move_id, peer, changed_at) values ($1, $2, $3, $4, $5)
on conflict (id) do update set state = excluded.state, move_id = excluded.move_id,
  peer = excluded.peer, changed_at = excluded.changed_at
"""
_TOUCH = """
update owners set changed_at = $2 where id = $1 and state in ('copying', 'arriving')
"""
_FORGET = "delete from owners where id = $1"
_ELSEWHERE = "select id, state, move_id, peer from owners where state not in ('here', 'copying')"
_HOLD = f"""
update lanes set wait_until = wait_until + {FAR}, rate_until = rate_until + {FAR},
  due_at = due_at + {FAR}
where owner_id = $1 and wait_until < {FAR}
"""
_RELEASE = f"""
update lanes set wait_until = wait_until - {FAR}, rate_until = rate_until - {FAR},
  due_at = due_at - {FAR}
where owner_id = $1 and wait_until >= {FAR}
"""
_UNSEEN = """
select exists (select 1 from events where owner_id = $1 and seq is null) as unseen,
  exists (select 1 from remainders where owner_id = $1) as more,
  exists (select 1 from wakes where webhook_id in (
    select webhook_id from lanes where owner_id = $1)) as noted
"""
_EVENTS = "select id, seq from events where owner_id = $1 and seq > $2 order by seq"
_LAST_SEQ = "select seq from outbox_state where id = 1"
_CLOSE = "select state from owners where id = $1 /*postgres for update*/"
_IN_FLIGHT = f"select count(*) as count from deliveries where {_SENT}"
_TAKE_CLAIMS = f"""
update deliveries set state = 'ready', retry = true, claim = null, node_id = null,
  next_at = due_now()
where {_SENT}
"""
_FORGET_CHANGES = "delete from move_changes where mover = $1"
_CHANGES = "select number, name, key from move_changes where mover = $1 order by number limit $2"
_COUNT_CHANGES = "select count(*) as count from move_changes where mover = $1"
_AMONG_NUMBERS = (
    "in (select cast(value as bigint) from /*sqlite json_each($1)*/"
    " /*postgres json_array_elements_text(cast($1 as json)) as numbers(value)*/)"
)
_TAKE_SEQS = "update outbox_state set seq = seq + cast($1 as bigint) where id = 1 returning seq"
_DUE = "select due_now() as due"
_ERASURES = """
update erasures set upto_pos = (select coalesce(max(pos), 0) from events) where owner_id = $1
"""
_REST = f"update lanes set due_at = {lanes.DUE.format(wait_until='lanes.wait_until')}"


@dataclass(frozen=True, slots=True)
class MoveState:
    """What a database says of an owner; `peer` is the address of the other one of his move."""

    state: State = "here"
    move_id: str = ""
    peer: str = ""


async def standing(tx: Tx, owner_id: str) -> MoveState:
    """Return where an owner is, by this database."""
    row = await tx.one(_OF, owner_id)
    return MoveState() if row is None else MoveState(row["state"], row["move_id"], row["peer"])


async def stand(tx: Tx, owner_id: str, at: MoveState) -> None:
    """Store where an owner is."""
    await tx.run(_SET, owner_id, at.state, at.move_id, at.peer, tx.now)


async def touch(tx: Tx, owner_id: str) -> None:
    """Note that a move goes on: see outbox.queue.upkeep.ended_moves."""
    await tx.run(_TOUCH, owner_id, tx.now)


async def closed_owners(tx: Tx) -> Mapping[str, MoveState]:
    """Return the owners who may not write here, and where each is."""
    rows = await tx.all(_ELSEWHERE)
    return {row["id"]: MoveState(row["state"], row["move_id"], row["peer"]) for row in rows}


def unreadable_owners(elsewhere: Mapping[str, MoveState]) -> Mapping[str, MoveState]:
    """Return those of whom there may be rows here that are not all, or not the newest.

    The source of an owner who leaves cannot know whether the target has him already.
    """
    return {one: at for one, at in elsewhere.items() if at.state != "resting"}


async def hold(tx: Tx, owner_id: str) -> None:
    """Let all lanes of an owner rest; again changes nothing."""
    await tx.run(_HOLD, owner_id)


async def release(tx: Tx, owner_id: str) -> None:
    """Undo `hold`."""
    await tx.run(_RELEASE, owner_id)


async def cancel_move(tx: Tx, owner_id: str) -> None:
    """Undo `hold`, and forget that the owner was leaving."""
    await release(tx, owner_id)
    await tx.run(_FORGET, owner_id)


async def lock_owner(tx: Tx, owner_id: str) -> None:
    """Wait for the transactions that write rows of a guarded owner, and let no other one begin."""
    await tx.one(_CLOSE, owner_id)


async def in_flight(tx: Tx, owner_id: str) -> int:
    """Return how many requests of an owner are on their way."""
    row = await tx.one(_IN_FLIGHT, owner_id)
    return 0 if row is None else int(row["count"])


async def take_claims(tx: Tx, owner_id: str) -> None:
    """Let the requests that are on their way settle nothing; they are sent again."""
    await tx.run(_TAKE_CLAIMS, owner_id)
    await deleted_webhooks.end_all_left(tx)


async def changes(tx: Tx, owner_id: str, most: int | None = None) -> list[Row]:
    """Return what the guards of an owner have noted, all or the first `most` of it."""
    return await tx.all(_CHANGES, owner_id, most)


async def count_changes(tx: Tx, owner_id: str) -> int:
    """Return how many changes the guards of an owner have noted."""
    row = await tx.one(_COUNT_CHANGES, owner_id)
    return 0 if row is None else int(row["count"])


async def note(tx: Tx, owner_id: str, table: str, keys: Sequence[str]) -> None:
    """Note rows as the guards of an owner do; each key is the text of a JSON array."""
    columns = ("mover", "name", "key")
    await insert(tx, "move_changes", columns, [(owner_id, table, key) for key in keys])


async def applied(tx: Tx, numbers: Sequence[int]) -> None:
    """Forget these notes."""
    await tx.run(f"delete from move_changes where number {_AMONG_NUMBERS}", items(numbers))


async def forget_changes(tx: Tx, owner_id: str) -> None:
    """Forget all notes about an owner."""
    await tx.run(_FORGET_CHANGES, owner_id)


async def forget_move(tx: Tx, owner_id: str) -> None:
    """Forget that an owner was moving; his guards then do nothing."""
    await tx.run(_FORGET, owner_id)


async def seqs(tx: Tx, owner_id: str) -> list[int]:
    """Return the numbers of an owner's events in order."""
    return [row["seq"] for row in await tx.all(_EVENTS, owner_id, 0)]


async def is_fanned_out(tx: Tx, owner_id: str) -> bool:
    """Return whether fan-out has seen all events of an owner, and left no note about them."""
    row: Row | None = await tx.one(_UNSEEN, owner_id)
    return row is not None and not (row["unseen"] or row["more"] or row["noted"])


async def settled_here(tx: Tx, owner_id: str) -> None:
    """Let the copied queue of an owner continue here."""
    await tx.run(_ERASURES, owner_id)
    await tx.run(f"{_REST} where owner_id = $1", owner_id)


@dataclass(frozen=True, slots=True)
class Renumbering:
    """What a queue's rows become in another database: the order stays, the numbers do not.

    `seqs` are those of the owner's events before, in order; `numbers` are theirs here, behind the
    number before the first. `ahead` is how far the due clock here is ahead of the other one.
    """

    seqs: array[int]
    numbers: array[int]
    due: int
    ahead: int

    def seq(self, before: int) -> int:
        """Return the number of the last event up to the number `before`."""
        return self.numbers[bisect_right(self.seqs, before)]

    def change(self, table: str, row: Values) -> None:
        """Change one row for its new database."""
        change = CHANGES.get(table)
        if change is not None:
            change(self, row)


async def passage(source: Tx, target: Tx, owner_id: str) -> Renumbering:
    """Compare the clocks, and read which events of an owner both databases have."""
    there, here = await source.one(_DUE), await target.one(_DUE)
    last = await target.one(_LAST_SEQ)
    assert there is not None
    assert here is not None
    assert last is not None
    known = {row["id"]: row["seq"] for row in await target.all(_EVENTS, owner_id, 0)}
    seqs, numbers = array("q"), array("q")
    for row in await source.all(_EVENTS, owner_id, 0):
        if row["id"] in known:
            seqs.append(row["seq"])
            numbers.append(known[row["id"]])
    numbers.insert(0, numbers[0] - 1 if numbers else last["seq"])
    return Renumbering(seqs, numbers, here["due"], here["due"] - there["due"])


async def number(target: Tx, source: Tx, owner_id: str, passage: Renumbering) -> None:
    """Take numbers in the target for the newer events of an owner, and commit this soon."""
    after = passage.seqs[-1] if passage.seqs else 0
    new = array("q", [row["seq"] for row in await source.all(_EVENTS, owner_id, after)])
    if not new:
        return
    taken = await target.one(_TAKE_SEQS, len(new))
    assert taken is not None
    last: int = taken["seq"]
    passage.seqs.extend(new)
    passage.numbers.extend(range(last - len(new) + 1, last + 1))


def _event(passage: Renumbering, row: Values) -> None:
    row["seq"] = passage.seq(row["seq"])


def _webhook(passage: Renumbering, row: Values) -> None:
    # All events from before have their deliveries.
    row |= {"since_pos": 0, "since_snapshot": None}


def _lane(passage: Renumbering, row: Values) -> None:
    row["due_at"] = None
    if row["wait_until"] >= FAR:
        row["wait_until"] -= FAR
        row["rate_until"] -= FAR
    for name in ("turned_at", "wait_until", "rate_until", "probe_at", "failing_from"):
        if row[name]:
            row[name] += passage.ahead


def _delivery(passage: Renumbering, row: Values) -> None:
    row["seq"] = passage.seq(row["seq"])
    if row["state"] == "in_flight":
        # The sender of the claim has ended, and it may have sent the request or not.
        row |= {
            "state": "ready", "retry": True, "claim": None, "node_id": None,
            "next_at": passage.due,
        }  # fmt: skip
    else:
        row["next_at"] += passage.ahead


def _job(passage: Renumbering, row: Values) -> None:
    row["last_seq"] = passage.seq(row["last_seq"])
    if row["kind"] != "snapshot":
        row["place"] = passage.seq(row["place"])


CHANGES: Mapping[str, Callable[[Renumbering, Values], None]] = {
    "events": _event,
    "webhooks": _webhook,
    "lanes": _lane,
    "deliveries": _delivery,
    "jobs": _job,
    "forgotten": _event,
    "erasures": _event,
}
"""The tables whose rows change on the way."""
