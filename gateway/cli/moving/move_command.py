"""`carteiro move`: takes one owner from one database to another.

Between two databases of PostgreSQL servers may use both: see gateway.cli.moving.live_move. With
SQLite no server may use either, and the row of the owner in `owners` says how far it is: leaving in
the source, then here in the target (committed together with all rows), then gone in the source. A
command that was ended in between is repeated; until the target has the owner, `--cancel` lets the
source have him again. Nothing else takes one owner from or to an SQLite file: `carteiro copy` takes
a whole installation. It is one module because each step of a move stands on the one before.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.cli.commands import existing, filled
from gateway.cli.data import backup_keys
from gateway.cli.data.progress_bar import Progress
from gateway.cli.moving import target
from gateway.cli.moving.chain_proof import ChainProof, Damaged
from gateway.cli.moving.moved_rows import Rings
from gateway.cli.moving.owner_copy import OwnerCopy
from gateway.cli.moving.owner_removal import forget
from gateway.cli.moving.standings import (
    Found,
    Seen,
    find,
    has_arrived,
    hold_mail,
    make_deliveries,
    release_mail,
)
from gateway.cli.moving.target import Address
from gateway.cli.pause import must_not_be_paused
from gateway.domain.privacy import certificates
from gateway.server import startup
from gateway.server.config import Config
from outbox.clock import SystemClock
from outbox.database.database_urls import without_password
from outbox.database.exclusive import Exclusive
from outbox.database.pacing import JobPace
from outbox.database.transaction import Tx
from outbox.database.transfer import Place
from outbox.database.transfer_ends import exclusive
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.owner_moves import MoveState
from outbox.webhooks import key_mark
from outbox.webhooks.secrets import KeyRing

Say = Callable[[str], None]
PLAN_WORDS = 3


async def move(config: Config, arguments: Namespace, say: Say) -> None:
    """Move an owner to another database, or each one of a plan. Raise CannotStart."""
    if arguments.plan is not None:
        if arguments.email or arguments.to or arguments.key_file or arguments.cancel:
            raise CannotStart("--plan names the accounts and their cells; leave the others out")
        await follow(config, arguments, say)
        return
    if not (arguments.email and arguments.to):
        raise CannotStart("enter EMAIL and --to, or --plan")
    to_config = target.configured(config, arguments.to, arguments.key_file)
    await take(config, to_config, arguments.email, arguments, say)


async def follow(config: Config, arguments: Namespace, say: Say) -> None:
    """Do the moves of a plan in order, up to `rate` an hour. Raise CannotStart at the first fault.

    A move that was done before is done again, which changes nothing.
    """
    clock, began, rate = SystemClock(), None, arguments.rate
    for email, source, to in read_plan(Path(arguments.plan)):
        if rate and began is not None:
            await asyncio.sleep(max(0.0, began + 3600 / rate - clock.monotonic()))
        began = clock.monotonic()
        ends = [
            config if name == config.cell.name else target.peer_config(config, name)
            for name in (source, to)
        ]
        await take(ends[0], ends[1], email, arguments, say)


async def take(
    config: Config, to_config: Config, email: str, arguments: Namespace, say: Say
) -> None:
    """Move an owner, or go on with it. Raise CannotStart."""
    ends = target.named(config), target.named(to_config)
    if ends[0] == ends[1] or target.same(config, to_config):
        raise CannotStart("--to is the database that has the owner")
    # Both schemas are those of this program.
    async with existing(config) as source, filled(to_config) as there:
        if not arguments.cancel:
            # What waits in a copy to look at would be sent there, or never.
            await must_not_be_paused(source, ends[0])
            await must_not_be_paused(there, ends[1])
    async with target.address(config, to_config) as address:
        if _place(config).engine == _place(to_config).engine == "postgres":
            await _live(config, to_config, email, arguments, say, ends=ends, address=address)
        else:
            await _offline(config, to_config, (email, arguments.cancel), ends, address, say)


async def _offline(
    config: Config,
    to_config: Config,
    wanted: tuple[str, bool],
    ends: tuple[str, str],
    address: Address,
    say: Say,
) -> None:
    """Move from or to SQLite, while no server uses either database."""
    email, cancel = wanted
    async with exclusive(_place(config)) as source, exclusive(_place(to_config)) as there:
        async with source.transaction() as tx, there.transaction() as target_tx:
            standing = await find(tx, target_tx, email, ends)
            if not cancel:
                await address.announce(tx, standing.owner_id)
        moving = Move(source, there, ends, standing)
        if cancel:
            await moving.cancel()
            say(f"{email} stays in {ends[0]}.")
            return
        rings = await _rings(source, config, there, to_config)
        with Progress("move", sys.stderr, SystemClock()) as progress:
            copied, forgotten = await moving.run(rings, progress.at)
        async with there.transaction() as tx:
            await address.change(tx, standing.owner_id)
    for sentence in moving.sentences:
        say(sentence)
    say(f"Moved {email}: {copied:,} rows are in {ends[1]}.")
    say(f"{forgotten:,} rows are deleted in {ends[0]}.")


async def _live(
    config: Config,
    to_config: Config,
    email: str,
    arguments: Namespace,
    say: Say,
    *,
    ends: tuple[str, str],
    address: Address,
) -> None:
    """Move between two databases of PostgreSQL, whether servers use them or not."""
    from gateway.cli.moving.live_move import LiveMove
    from gateway.server.parts import PARTS
    from outbox.database.postgres.job_signals import servers_meter
    from outbox.database.postgres.move_connection import open_beside

    tries = (arguments.parts or PARTS).lock_tries
    async with (
        open_beside(_place(config), tries) as source,
        open_beside(_place(to_config), tries) as there,
        servers_meter((_place(config), _place(to_config)), source.clock) as meter,
    ):
        async with source.snapshot() as tx, there.snapshot() as target_tx:
            standing = await find(tx, target_tx, email, ends)
            if not arguments.cancel:
                await address.announce(tx, standing.owner_id)
        pace = JobPace(meter, 1, clock=source.clock)
        moving = LiveMove(source, there, ends, standing, address, pace)
        if arguments.cancel:
            await moving.cancel()
            say(f"{email} stays in {ends[0]}.")
            return
        rings = await _rings(source, config, there, to_config)
        with Progress("move", sys.stderr, SystemClock()) as progress:
            moved = await moving.run(rings, progress.at)
        for sentence in moving.sentences:
            say(sentence)
        say(f"Moved {email}: {moved.copied:,} rows are in {ends[1]}.")
        say(f"Closed for {moved.closed:.2f} seconds.")
        # Beside the writes of others this takes longer than the copy.
        deleted = await moving.clear()
    say(f"{deleted:,} rows are deleted in {ends[0]}.")


async def _rings(source: Exclusive, config: Config, target: Exclusive, to_config: Config) -> Rings:
    """Return the keys of both ends. Raise CannotStart when the target needs some."""
    rings = await _ring(source, config), await _ring(target, to_config)
    if rings[0] is not None and rings[1] is None:
        raise CannotStart(f"{startup.keys_named(to_config)} is missing; name one by --key-file")
    return rings


class Move:
    """The way of one owner from a source to a target, from wherever it is.

    `ends` are the addresses of both.
    """

    def __init__(
        self,
        source: Exclusive,
        target: Exclusive,
        ends: tuple[str, str],
        standing: Found,
    ) -> None:
        self._source, self._target = source, target
        self._ends = ends
        self._owner_id = standing.owner_id
        self._here, self._there = standing.here, standing.there
        self.sentences: Sequence[str] = ()
        """What the owner's delivery log had before, and has now."""

    async def run(self, rings: Rings, seen: Seen) -> tuple[int, int]:
        """Go on to the end; return how many rows were copied now and deleted now."""
        copied = 0
        if self._here.state == "here":
            self._here = await self._close()
        if self._here.state == "leaving":
            if not has_arrived(self._here, self._there):
                try:
                    copied = await self._copy(rings, seen)
                except Damaged:
                    await self._stay()
                    raise
            async with self._source.transaction() as tx:
                gone = MoveState("gone", self._here.move_id, self._ends[1])
                await owner_moves.stand(tx, self._owner_id, gone)
        return copied, await forget(self._source, self._owner_id)

    async def cancel(self) -> None:
        """Let the source have the owner again. Raise CannotStart when the target has him."""
        if self._here.state != "leaving" or has_arrived(self._here, self._there):
            raise CannotStart(
                "the owner is not leaving"
                if self._here.state == "here"
                else "the target has the owner; repeat the command without --cancel"
            )
        await self._stay()

    async def _stay(self) -> None:
        async with self._source.transaction() as tx:
            await release_mail(tx, self._owner_id)
            await owner_moves.cancel_move(tx, self._owner_id)

    async def _close(self) -> MoveState:
        """Let nothing more of the owner begin in the source, also by servers that start now."""
        async with self._source.transaction() as tx:
            closed = MoveState("leaving", tx.new_id(), self._ends[1])
            await owner_moves.stand(tx, self._owner_id, closed)
            await owner_moves.hold(tx, self._owner_id)
            await hold_mail(tx, self._owner_id)
        try:
            # One that started before has not read it.
            await self._source.must_be_alone()
        except CannotStart:
            await self._stay()
            raise
        return closed

    async def _copy(self, rings: Rings, seen: Seen) -> int:
        await self._fan_out()
        copying = OwnerCopy(self._owner_id, (self._source, self._target), rings, seen)
        async with self._source.transaction() as source, self._target.transaction() as target:
            await copying.copy(source, target)
            proof = ChainProof(self._owner_id, (self._source, self._target), rings)
            await proof.advance(source, target, ())
            self.sentences = proof.sentences
            await _seal_certificates(target, self._owner_id, rings)
            arrived = MoveState("here", self._here.move_id, self._ends[0])
            await owner_moves.stand(target, self._owner_id, arrived)
        return copying.rows

    async def _fan_out(self) -> None:
        """Make the deliveries of all events of the owner."""
        while True:
            async with self._source.transaction() as tx:
                if await owner_moves.is_fanned_out(tx, self._owner_id):
                    return
                await make_deliveries(tx)


async def _ring(database: Exclusive, config: Config) -> KeyRing | None:
    """Return the keys of a database. Raise CannotStart for those of another one."""
    ring = backup_keys.of(config, Ids())
    async with database.transaction() as tx:
        if ring is None and await key_mark.needed(tx.all):
            raise CannotStart(f"{startup.keys_named(config)} is missing")
        fault = None if ring is None else await key_mark.objection_in(tx, ring)
    if fault is not None:
        url = without_password(config.database.url)
        raise CannotStart(key_mark.refusal(startup.keys_named(config), url, fault))
    return ring


async def _seal_certificates(tx: Tx, owner_id: str, rings: Rings) -> None:
    """Seal the certificates of erasures with a key of the target, if they are intact."""
    old, new = rings
    if old is not None and new is not None:
        await certificates.seal_again(tx, owner_id, old, new)


def _place(config: Config) -> Place:
    settings = config.database
    return Place(
        settings.url, SystemClock(), Ids(), settings.direct_url, settings.synchronous_commit
    )


def read_plan(file: Path) -> Sequence[tuple[str, str, str]]:
    """Return e-mail address, source and target of each move: a line each. Raise CannotStart."""
    try:
        text = file.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise CannotStart(f"{file} cannot be read: {why}") from None
    steps = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != PLAN_WORDS:
            raise CannotStart(f"{file}, line {number}: must be EMAIL FROM TO")
        steps.append((words[0], words[1], words[2]))
    return steps
