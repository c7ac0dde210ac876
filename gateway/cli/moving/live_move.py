"""Move one owner between two PostgreSQL databases while servers use both.

1. Guards in the source note what changes, and guards in the target keep what arrives as it is.
2. All rows are copied, then what has changed meanwhile, until little is left. The target's delivery
   log is verified, and the numbers of rows are compared. What is copied later is compared by row.
3. The owner rests: his records accept no writes, his lanes no claims. Fan-out does his last events
   and the requests on their way settle, for half a second at most.
4. He leaves: nothing of him is written any more. The rest is copied, and new attempts are verified.
5. One transaction lets him be here in the target. The source then says that he is gone, deletes
   his rows and drops the guards. What refuses his events there stays.

The states are in `owners` of both databases, so a command that ended is repeated and goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.cli.moving.chain_proof import ChainProof, Damaged
from gateway.cli.moving.live_copy import LiveCopy
from gateway.cli.moving.moved_rows import QUEUED_MAIL, TABLES, Rings
from gateway.cli.moving.owner_removal import forget
from gateway.cli.moving.standings import (
    Found,
    Seen,
    has_arrived,
    hold_mail,
    make_deliveries,
    release_mail,
)
from gateway.cli.moving.target import Address
from gateway.domain.privacy import certificates
from gateway.domain.product_ownership import OWNERSHIP
from outbox.database.ownership import OUTBOX
from outbox.database.pacing import JobPace
from outbox.database.postgres import guards
from outbox.database.postgres.guards import Guarded
from outbox.database.postgres.move_connection import MoveConnection
from outbox.database.transaction import Tx
from outbox.errors import CannotStart
from outbox.events import event_index
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState, State

FEW = 200
"""Changes of a pass, after which the owner may be closed."""
PASSES = 20
SETTLE_SECONDS = 0.5
FAN_OUT_SECONDS = 0.2
"""Time that fan-out of the servers gets before the command does it."""
LOOK_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Moved:
    """What a move did: rows copied, and the seconds for which the owner was closed."""

    copied: int
    closed: float


class LiveMove:
    """The way of one owner from a source to a target, from wherever it is."""

    def __init__(
        self,
        source: MoveConnection,
        target: MoveConnection,
        ends: tuple[str, str],
        standing: Found,
        address: Address,
        pace: JobPace,
    ) -> None:
        self._pace = pace
        self._source, self._target = source, target
        self._ends = ends
        self._address = address
        self._owner_id = standing.owner_id
        self._here, self._there = standing.here, standing.there
        self._closed_at = 0.0
        self.sentences: Sequence[str] = ()
        """What the owner's delivery log had before, and has now."""

    async def run(self, rings: Rings, seen: Seen) -> Moved:
        """Go on until the target has the owner; `clear` is left to do. Raise CannotStart."""
        await self._refuse()
        copied, closed = 0, 0.0
        if self._here.state != "gone" and not has_arrived(self._here, self._there):
            copying = LiveCopy(
                self._owner_id, (self._source, self._target), rings, seen, self._pace
            )
            proof = ChainProof(self._owner_id, (self._source, self._target), rings)
            try:
                await self._arrive(copying, proof)
                await self._flip(copying, proof, rings)
            except Damaged:
                await self.cancel()
                raise
            self.sentences = proof.sentences
            copied, closed = copying.rows, self._source.clock.monotonic() - self._closed_at
        await self._stand("gone")
        async with self._target.snapshot() as tx:
            await self._address.change(tx, self._owner_id)
        return Moved(copied, closed)

    async def clear(self) -> int:
        """Delete the rows of an owner who is gone from the source; return how many."""
        # Deleting some rows changes others.
        await self._source.moves(self._here.move_id)
        await self._target.moves(self._here.move_id)
        await self._drop(self._target)
        await self._mark()
        deleted = await self._forget(self._source)
        await self._drop(self._source)
        await self._source.step(owner_moves.forget_changes, self._owner_id)
        return deleted

    async def cancel(self) -> None:
        """Let the source have the owner again. Raise CannotStart when the target has him."""
        if self._here.state not in ("copying", "resting", "leaving"):
            raise CannotStart("the owner is not leaving")
        if has_arrived(self._here, self._there):
            raise CannotStart("the target has the owner; repeat the command without --cancel")
        if self._here.state != "copying":
            # To delete what has arrived takes a while, and nobody needs to wait for it.
            copying = replace(self._here, state="copying")
            await self._source.turn(_reopen, self._owner_id, copying)
        await self._target.moves(self._here.move_id)
        await self._forget(self._target)
        await self._target.turn(owner_moves.forget_move, self._owner_id)
        await self._drop(self._target)
        await self._source.turn(_stay, self._owner_id)
        await self._drop(self._source)
        await self._source.step(owner_moves.forget_changes, self._owner_id)

    async def _arrive(self, copying: LiveCopy, proof: ChainProof) -> None:
        """Copy everything, as far as it goes while the owner is served."""
        if self._here.state == "here" or self._there.state != "arriving":
            # A source that is closed without anything in the target begins anew.
            await self._source.turn(_stay, self._owner_id)
            self._here = MoveState("here", self._source.new_id(), self._ends[1])
            await self._stand("copying")
        await self._target.moves(self._here.move_id)
        if self._here.state != "copying":
            return
        # First both rows: servers drop the guards of owners who do not move.
        self._there = MoveState("arriving", self._here.move_id, self._ends[0])
        await self._target.turn(owner_moves.stand, self._owner_id, self._there)
        await self._guard()
        await self._forget(self._target)
        await copying.all()
        await self._catch_up(copying, proof)
        await copying.changes(compare=True)
        await self._catch_up(copying, proof)

    async def _catch_up(self, copying: LiveCopy, proof: ChainProof) -> None:
        """Copy and verify what has changed, until little is left."""
        for _ in range(PASSES):
            noted = await copying.parts() + await copying.changes()
            verified = await self._verify(copying, proof)
            if max(noted, verified) <= FEW:
                return

    async def _verify(self, copying: LiveCopy, proof: ChainProof) -> int:
        """Verify the log as far as it has arrived; return how many attempts were read."""
        async with self._source.snapshot() as source, self._target.snapshot() as target:
            return await proof.advance(source, target, copying.take_attempts())

    async def _refuse(self) -> None:
        """Let both databases refuse what a process writes that has not heard of the move."""
        for database in (self._source, self._target):
            for table in guards.REFUSING:
                if not await database.step(guards.refuses, table):
                    await database.execute(guards.refusing(table))

    async def _guard(self) -> None:
        """Make the guards of both databases."""
        for table in TABLES:
            settles = table in OUTBOX or table in QUEUED_MAIL
            guarded = Guarded(table, await self._source.key(table), settles)
            await self._source.execute(guards.at_source(OWNERSHIP, guarded, self._owner_id))
            await self._target.execute(guards.at_target(OWNERSHIP, table, self._owner_id))

    async def _drop(self, database: MoveConnection) -> None:
        for statements in guards.dropped(TABLES, self._owner_id):
            await database.execute(statements)

    async def _flip(self, copying: LiveCopy, proof: ChainProof, rings: Rings) -> None:
        """Close the owner, copy the rest, and let him be in the target."""
        self._closed_at = self._source.clock.monotonic()
        if self._here.state == "copying":
            self._here = replace(self._here, state="resting")
            await self._source.turn(_rest, self._owner_id, self._here)
        if self._here.state == "resting":
            await self._settle(copying)
        # A command that goes on while he is closed has compared nothing yet.
        await copying.changes(compare=not copying.is_compared)
        await self._verify(copying, proof)
        arrived = MoveState("here", self._here.move_id, self._ends[0])
        await self._target.turn(_open, self._owner_id, arrived, rings)

    async def _settle(self, copying: LiveCopy) -> None:
        """Wait for the owner's last events and requests, and close his queue."""
        clock = self._source.clock
        since = clock.monotonic()
        await copying.changes()
        gone = replace(self._here, state="leaving")
        while not await self._source.turn(
            _leave, self._owner_id, gone, clock.monotonic() - since > SETTLE_SECONDS
        ):
            if clock.monotonic() - since > FAN_OUT_SECONDS:
                await self._source.step(make_deliveries)
                await self._source.tell("work")
            await asyncio.sleep(LOOK_SECONDS)
        self._here = gone

    async def _stand(self, state: State) -> None:
        """Store where the owner is, by the source."""
        self._here = replace(self._here, state=state)
        await self._source.turn(owner_moves.stand, self._owner_id, self._here)

    async def _mark(self) -> None:
        """Mark the owner's events in blocks that were marked before he arrived."""
        async with self._target.snapshot() as tx:
            upto = await event_index.marked(tx)
            seqs = [seq for seq in await owner_moves.seqs(tx, self._owner_id) if seq < upto]
        firsts = sorted({seq // event_index.BLOCK for seq in seqs})
        for first in firsts:
            await self._target.step(event_index.renew, [first * event_index.BLOCK])

    async def _forget(self, database: MoveConnection) -> int:
        return await database.patiently(lambda: forget(database, self._owner_id, self._pace.step))


async def _rest(tx: Tx, owner_id: str, resting: MoveState) -> None:
    await owner_moves.lock_owner(tx, owner_id)
    if await owner_moves.standing(tx, owner_id) != replace(resting, state="copying"):
        # What was noted since then may be gone.
        raise CannotStart("this move was given up meanwhile; repeat the command")
    await owner_moves.stand(tx, owner_id, resting)
    await owner_moves.hold(tx, owner_id)
    await hold_mail(tx, owner_id)


async def _leave(tx: Tx, owner_id: str, leaving: MoveState, at_once: bool) -> bool:
    """Close the queue when nothing is left to do in it; `at_once` takes claims away."""
    if not await owner_moves.is_fanned_out(tx, owner_id):
        return False
    if not at_once and await owner_moves.in_flight(tx, owner_id):
        return False
    await owner_moves.lock_owner(tx, owner_id)
    if not await owner_moves.is_fanned_out(tx, owner_id):
        return False
    # A request that settled may have set the time of its lane.
    await owner_moves.hold(tx, owner_id)
    await hold_mail(tx, owner_id)
    await owner_moves.take_claims(tx, owner_id)
    await owner_moves.stand(tx, owner_id, leaving)
    return True


async def _open(tx: Tx, owner_id: str, here: MoveState, rings: Rings) -> None:
    await owner_moves.lock_owner(tx, owner_id)
    if await owner_moves.standing(tx, owner_id) != replace(here, state="arriving"):
        # Some of what had arrived may be deleted.
        raise CannotStart("the target gave this move up meanwhile; repeat the command")
    await owner_moves.settled_here(tx, owner_id)
    await release_mail(tx, owner_id)
    old, new = rings
    if old is not None and new is not None:
        await certificates.seal_again(tx, owner_id, old, new)
    await owner_moves.stand(tx, owner_id, here)


async def _reopen(tx: Tx, owner_id: str, copying: MoveState) -> None:
    await owner_moves.stand(tx, owner_id, copying)
    await release_mail(tx, owner_id)
    await owner_moves.release(tx, owner_id)


async def _stay(tx: Tx, owner_id: str) -> None:
    await owner_moves.forget_move(tx, owner_id)
    await release_mail(tx, owner_id)
    await owner_moves.cancel_move(tx, owner_id)
