"""A world whose owners steer: ordered webhooks, single deliveries and jobs; chains are verified."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Any

from outbox.database.transaction import Database, Row, Tx
from outbox.errors import OutboxError
from outbox.queue.order import ordering, record_lines
from outbox.queue.proof.verification import verify
from outbox.queue.replays import jobs, steering
from outbox.queue.replays.jobs import Draft, TooMany
from outbox.worker.recovering import Recovering
from tests.support.simulated.world import OWNER, PATIENCE, UNFINISHED, Broken, Hook, World

RECORDS = 3
"""Records that all writes of a world are about."""
YEAR = 365 * 86_400_000_000
WAITING = """
select id, webhook_id from deliveries where state in ('ready', 'held', 'in_flight') order by id
"""
HEADLESS = """
select distinct w.url, h.record_id from deliveries h
join webhooks w on w.id = h.webhook_id join lanes l on l.webhook_id = w.id
where h.state = 'held' and not l.turning and not exists (
  select 1 from deliveries d where d.webhook_id = h.webhook_id and d.record_id = h.record_id
    and d.ordered and d.state in ('ready', 'in_flight'))
"""
# Of each event, its record and its place, and the webhooks that got it again.
ORDER = "select id, record_id, seq from events where seq is not null"
AGAIN = """
select d.event_id, w.url from deliveries d join webhooks w on w.id = d.webhook_id
where d.origin <> 'event'
"""
RUNNING = "select * from jobs where state = 'running'"
TWICE = """
select replayed_by, event_id, webhook_id from deliveries where replayed_by like 'job-%'
group by replayed_by, event_id, webhook_id having count(*) > 1
"""


class Rows:
    """A snapshot for `verify`: nothing else runs meanwhile."""

    notes: Sequence[str] = ()

    def __init__(self, world: World) -> None:
        self._store = world.store

    async def query(self, sql: str, *args: Any) -> Sequence[Row]:
        return await self._store.read(_all, sql, args)

    async def by_index(self) -> None:
        """Do nothing: the tables are small."""

    async def stream(self, sql: str, size: int, *args: Any) -> AsyncGenerator[Sequence[Row], None]:
        found = await self.query(sql, *args)
        for start in range(0, len(found), size):
            yield found[start : start + size]


class Steered(World):
    """A world with ordered webhooks, whose owners try, skip and cancel deliveries and run jobs."""

    asked = 0

    @property
    def db(self) -> Database:
        return self.store  # type: ignore[return-value] # its methods are those of a database

    def record_of(self, number: int) -> str:
        return f"record-{number % RECORDS}"

    def turn(self, hook: Hook, ordered: bool) -> None:
        """Turn the order of a webhook on or off; faults may leave the end of it to the duty."""
        if not hook.removed:
            hook.turned, hook.ordered = True, ordered
            hook.quiet_from = None
            self._try(ordering.turn(self.db, hook.id, ordered))

    def steer(self, place: int, how: str) -> None:
        """Try a waiting delivery now, cancel it, or skip it as the head of its line."""
        found = self.rows(WAITING)
        if not found:
            return
        one, webhook_id = found[place % len(found)]
        hook = next(hook for hook in self.hooks if hook.id == webhook_id)
        if how == "try":
            self._steered(self.store.write(steering.try_now, one))
            return
        hook.may_cancel = True
        if how == "cancel":
            self._steered(self.store.write(steering.cancel, [one]))
        else:
            self._steered(self.store.write(record_lines.skip, one))

    def recover(self, hook: Hook) -> None:
        """Start a job that replays what was cancelled or given up."""
        if hook.removed:
            return
        self.asked += 1
        draft = Draft(("cancelled", "exhausted"), None, 0, self.time.wall() + YEAR, 1_000)
        self._steered(
            self.store.write(
                jobs.create, owner_id=OWNER, webhook_id=hook.id, user_id=f"job-{self.asked}",
                draft=draft, total=0,
            )
        )  # fmt: skip

    def work_off(self) -> None:
        """Take a step of each job, and finish what changes of order have begun."""
        for job in self._try(self.store.read(jobs.running)) or ():
            self._try(Recovering(self.db).step(job))
        self._try(ordering.finish_all(self.db))
        self._try(ordering.repair(self.db))

    def heal(self) -> None:
        super().heal()
        for _ in range(PATIENCE):
            if not self.rows(RUNNING) and not self.rows(UNFINISHED)[0][0]:
                return
            self.work_off()
            self.advance(1.0)
        raise Broken(f"jobs that never end: {self.rows(RUNNING)}")

    def check(self) -> None:
        super().check()
        turned = {hook.url for hook in self.hooks if hook.turned}
        if headless := [row for row in self.rows(HEADLESS) if row[0] not in turned]:
            raise Broken(f"lines without a head: {headless}")
        if twice := self.rows(TWICE):
            raise Broken(f"replayed twice by one job: {twice}")
        self._in_order()

    def check_complete(self) -> None:
        super().check_complete()
        source: Any = Rows(self)
        verdict = self._run(verify(source, self.ring))
        if verdict.faults:
            raise Broken(f"chains are broken: {verdict.faults}")

    def _in_order(self) -> None:
        """The events of each record arrive in their order, but for those that were replayed."""
        places = {row[0]: (row[1], row[2]) for row in self.rows(ORDER)}
        again = set(self.rows(AGAIN))
        ordered = {hook.url for hook in self.hooks if hook.ordered and not hook.turned}
        last: dict[tuple[str, str], int] = {}
        for receipt in self.network.got:
            if receipt.url not in ordered or (receipt.event_id, receipt.url) in again:
                continue
            record, seq = places[receipt.event_id]
            if seq < last.get((receipt.url, record), 0):
                raise Broken(f"{receipt} arrived after a later event of {record}")
            last[receipt.url, record] = seq

    def _steered(self, action: Awaitable[object]) -> None:
        try:
            self._try(action)
        except (OutboxError, TooMany):
            return


async def _all(tx: Tx, sql: str, args: Sequence[Any]) -> Sequence[Row]:
    return await tx.all(sql, *args)
