"""Duties of the installation: the leading node runs each one once per period.

A row per duty records the start and end of its last run. A run starts with an UPDATE that names the
row as it was read, so that only one of two nodes that both believe they lead can start it. A run
that failed, or whose node died, has no end and is repeated. In a paused database (see
outbox.queue.upkeep.pause_mark) the duties rest whose work others notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import structlog

from outbox.database.leadership import Leadership
from outbox.database.transaction import Database, Tx, Unsubscribe
from outbox.durations import SECOND
from outbox.errors import DatabaseUnavailable

LOOK_SECONDS = 5.0
# Tolerance for timers that fire early, as a part of a period; a second at most.
SLACK = 0.1

log = structlog.get_logger("outbox")

BEGIN = """
insert into duties (name, began_at) values ($1, due_now())
on conflict (name) do update set began_at = excluded.began_at, ended_at = null
where duties.began_at = $2 and coalesce(duties.ended_at, 0) = $3
returning began_at
"""

END = "update duties set ended_at = due_now() where name = $1 and began_at = $2"

NOW = "select due_now() as now, paused_at from outbox_state"


@dataclass(frozen=True, slots=True)
class Mark:
    """Start and end of a duty's last run, on the due clock; 0 for never."""

    began_at: int = 0
    ended_at: int = 0


NEVER = Mark()


@dataclass(slots=True)
class _Duty:
    name: str
    seconds: float
    run: Callable[[], Awaitable[object]]
    is_needed: Callable[[], Awaitable[bool]] | None
    pausable: bool
    began_at: int = 0
    failures: int = 0
    not_before: float = 0.0


class Duties:
    """This node's share of the duties: all while it leads, none otherwise.

    `look` must run every few seconds; `wake` spares one duty the wait for it. A duty is cancelled
    where it awaits when its node stops leading.
    """

    def __init__(
        self, db: Database, leadership: Leadership, look_seconds: float | None = None
    ) -> None:
        self.look_seconds = LOOK_SECONDS if look_seconds is None else look_seconds
        self.leadership = leadership
        self._db = db
        self._duties: list[_Duty] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._awaited: set[str] = set()
        """Names of duties that were woken and not looked at since."""
        self._wakes = 0
        self._wakers: dict[str, str] = {}
        self._noted: Literal["", "paused", "resumed"] = ""
        self._unwatch: Unsubscribe | None = None
        self._waking: asyncio.Task[None] | None = None
        leadership.on_loss(self._drop)

    def once_every(
        self,
        seconds: float,
        name: str,
        duty: Callable[[], Awaitable[object]],
        *,
        pausable: bool = False,
    ) -> None:
        """Run `duty` once in each `seconds` on one of all nodes; the first run is immediate.

        A `pausable` one does what others notice: it rests in a paused database.
        """
        self._duties.append(_Duty(name, seconds, duty, None, pausable))

    def when(
        self,
        is_needed: Callable[[], Awaitable[bool]],
        name: str,
        duty: Callable[[], Awaitable[object]],
        woken_by: str = "",
        *,
        pausable: bool = False,
    ) -> None:
        """Run `duty` on one of all nodes at each look at which `is_needed` returns True.

        Where a commit changed `woken_by` (Tx.changed), it runs without waiting for the look.
        """
        if woken_by:
            self._wakers[woken_by] = name
        self._duties.append(_Duty(name, self.look_seconds, duty, is_needed, pausable))

    @property
    def names(self) -> list[str]:
        return [duty.name for duty in self._duties]

    def start(self) -> None:
        """Stand for leader, unless this node does."""
        if self._unwatch is None:
            self._unwatch = self._db.on_change(self._changed)
        self.leadership.start()

    async def stop(self) -> None:
        """Cancel running duties and give up the leadership; they may start again."""
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._awaited.clear()
        if self._waking is not None:
            self._waking.cancel()
        self._drop()
        await self.idle()
        await self.leadership.stop()

    async def idle(self) -> None:
        """Wait until no duty runs in this process."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _changed(self, names: Collection[str]) -> None:
        for woken_by in self._wakers.keys() & names:
            self.wake(self._wakers[woken_by])

    def wake(self, name: str) -> None:
        """Run a duty now, or once more after its run, instead of at the next look.

        Nothing is lost where this node does not lead: the one that does looks every few seconds.
        """
        if not self.leadership.leads:
            return
        self._awaited.add(name)
        self._wakes += 1
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._look_now(), name="duties-wake")

    async def _look_now(self) -> None:
        seen = 0
        try:
            # A look may have passed the duty that is woken meanwhile.
            while seen != self._wakes:
                seen = self._wakes
                await self.look()
        except DatabaseUnavailable as error:
            log.warning("duty_put_off", duty="wake", error=str(error))
        except Exception:
            log.exception("duty_failed", duty="wake")

    async def look(self) -> None:
        """Start the due duties; return without waiting for their ends."""
        if not self.leadership.leads:
            self._drop()
            return
        marks, now, paused = await self._db.read(marks_now)
        self._note(paused)
        due = [
            (duty, mark)
            for duty in self._duties
            if duty.name not in self._running
            and not (paused and duty.pausable)
            and self._is_due(duty, mark := marks.get(duty.name, NEVER), now)
        ]
        self._awaited.difference_update(duty.name for duty, _ in due)
        if self._db.one_writer:
            # Together in one snapshot; on PostgreSQL each would open a connection.
            answers: Iterable[bool] = await asyncio.gather(*(_is_needed(duty) for duty, _ in due))
        else:
            answers = [await _is_needed(duty) for duty, _ in due]
        for (duty, mark), needed in zip(due, answers, strict=True):
            # Another look may have begun it meanwhile.
            if needed and duty.name not in self._running:
                task = asyncio.create_task(self._run(duty, mark), name=f"duty-{duty.name}")
                self._running[duty.name] = task
                task.add_done_callback(partial(self._ended, duty.name))

    def _note(self, paused: bool) -> None:
        """Log that the database is paused, and later that it is resumed, once each."""
        resting = [duty.name for duty in self._duties if duty.pausable]
        if paused and resting and self._noted == "":
            text = "it was restored with --pause; these duties rest until `carteiro resume`"
            log.warning("database_paused", duties=resting, text=text)
            self._noted = "paused"
        elif not paused and self._noted == "paused":
            log.info("database_resumed", duties=resting)
            # A look that read before the end of the pause may come after this one.
            self._noted = "resumed"

    def _ended(self, name: str, task: asyncio.Task[None]) -> None:
        del self._running[name]
        if name in self._awaited and not task.cancelled():
            self.wake(name)

    def _is_due(self, duty: _Duty, mark: Mark, now: int) -> bool:
        if mark.began_at and not mark.ended_at:
            if mark.began_at == duty.began_at:
                return self._db.clock.monotonic() >= duty.not_before
            # The duty of a former leader, which may not know yet that it was replaced.
            return self.leadership.settled
        if duty.name in self._awaited:
            return True
        slack = min(duty.seconds * SLACK, 1.0)
        return mark.began_at <= now - round((duty.seconds - slack) * SECOND)

    async def _run(self, duty: _Duty, mark: Mark) -> None:
        try:
            began_at = await self._db.write(begin, duty.name, mark)
            if began_at is None or not self.leadership.leads:
                return
            duty.began_at = began_at
            await duty.run()
            await self._db.write(end, duty.name, began_at)
            duty.failures = 0
        except DatabaseUnavailable as error:
            self._put_off(duty)
            log.warning("duty_put_off", duty=duty.name, error=str(error))
        except Exception:
            self._put_off(duty)
            log.exception("duty_failed", duty=duty.name)

    def _put_off(self, duty: _Duty) -> None:
        """Delay the next run: short at first, and one period for a duty that always fails."""
        wait = min(self.look_seconds * 2.0 ** min(duty.failures, 16), duty.seconds)
        duty.failures += 1
        duty.not_before = self._db.clock.monotonic() + wait

    def _drop(self) -> None:
        for task in self._running.values():
            task.cancel()


async def _is_needed(duty: _Duty) -> bool:
    return duty.is_needed is None or await duty.is_needed()


async def marks_now(tx: Tx) -> tuple[dict[str, Mark], int, bool]:
    """Return the duties' marks by name, the due clock, and whether the database is paused."""
    rows = await tx.all("select name, began_at, ended_at from duties")
    marks = {row["name"]: Mark(row["began_at"], row["ended_at"] or 0) for row in rows}
    state = await tx.one(NOW)
    assert state is not None
    return marks, int(state["now"]), state["paused_at"] is not None


async def begin(tx: Tx, name: str, seen: Mark) -> int | None:
    """Mark the start of a run unless the row differs from `seen`; return the mark, or None."""
    row = await tx.one(BEGIN, name, seen.began_at, seen.ended_at)
    return None if row is None else int(row["began_at"])


async def end(tx: Tx, name: str, began_at: int) -> bool:
    """Mark the end of the run started at `began_at`; return False if another has started."""
    return await tx.run(END, name, began_at) == 1
