"""The product with a broken rule, named by the variable BROKEN: what a negative control runs.

Run in place of `python -m gateway`. A few break the ground below the product instead: a store that
fails, a clock that jumps, a disk that is full.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import inf
from typing import Any

from aiohttp import web

from gateway.__main__ import main
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.accounts.sign_in import SignInDelays
from gateway.rest.auth import authenticate
from gateway.server.app_keys import DB
from gateway.server.http.rate_limits import RateLimits
from gateway.server.parts import PARTS, Parts
from outbox.clock import Clock, SystemClock
from outbox.database.fair_limit import FairSemaphore
from outbox.database.sqlite.unit_thread import Job as Write
from outbox.database.sqlite.writer import Writer
from outbox.database.transaction import DUTIES, Database, Tx
from outbox.events import enqueue
from outbox.queue.replays import job_steps, snapshot_steps
from outbox.queue.replays.job_selection import EventPage
from outbox.queue.replays.jobs import Job
from outbox.queue.replays.snapshot_steps import Copy, Source
from outbox.queue.state import lanes
from outbox.queue.state.claimed_deliveries import Result
from outbox.sending.outcome import Outcome, unanswered
from outbox.sending.send import Sender
from outbox.worker.recovering import Recovering
from outbox.worker.settling import Settling
from outbox.worker.settling import Write as SettlingWrite

HOUR = 3_600_000_000
NO_BOUND = 1 << 62


class Exchanged:
    """A module whose parts are exchanged. Raise AttributeError for one that it does not have."""

    def __init__(self, name: str) -> None:
        vars(self)["module"] = import_module(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["module"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self, name)
        setattr(vars(self)["module"], name, value)


def module(name: str) -> Any:
    return Exchanged(name)


class Pledges:
    """Deliveries that are recorded and not sent yet: the event is set when that is written."""

    def __init__(self) -> None:
        self.settled: dict[tuple[str, str], asyncio.Event] = {}
        self.tasks: set[asyncio.Task[None]] = set()


PLEDGES = Pledges()


class HastySender(Sender):
    """Reports a send at once, and sends when the report is recorded."""

    async def send(
        self, url: str, headers: Sequence[tuple[str, str]], *rest: Any, **more: Any
    ) -> Outcome:
        [event_id] = [text for name, text in headers if name == "X-Webhook-Id"]
        written = PLEDGES.settled[event_id, url] = asyncio.Event()

        async def later() -> None:
            await written.wait()
            await super(HastySender, self).send(url, headers, *rest, **more)

        task = asyncio.create_task(later())
        PLEDGES.tasks.add(task)
        task.add_done_callback(PLEDGES.tasks.discard)
        return replace(unanswered("success", "", 0.0), status=200, error=None)


class HastySettling(Settling):
    """Informs the sender of recorded results."""

    def __init__(self, db: Database, clock: Clock) -> None:
        super().__init__(db, clock)
        self.pledged: dict[str, tuple[str, str]] = {}

    def put(self, result: Result) -> None:
        self.pledged[result.delivery.id] = (result.delivery.event.id, result.url)
        super().put(result)

    async def write(self, first: SettlingWrite | None = None) -> float | None:
        wait = await super().write(first)
        for delivery_id in self.pledged.keys() - self.held():
            written = PLEDGES.settled.pop(self.pledged.pop(delivery_id), None)
            if written is not None:
                written.set()
        return wait


def sends_after_recording() -> Parts:
    """Record results before sending: a kill in between loses the delivery."""
    return Parts(sender=HastySender, settling=HastySettling)


class HastyRecovering(Recovering):
    """Stores the place of a job, and then what belongs before it."""

    def __init__(self, db: Database, source: Source | None = None) -> None:
        super().__init__(db, source)
        self.db, self.source = db, source

    async def step(self, job: Job) -> bool:
        return await (self.replays(job) if job.kind != "snapshot" else self.copies(job))

    async def replays(self, job: Job) -> bool:
        found = await self.db.scan(DUTIES, job_steps.find, job)
        if found is None:
            return False
        passed = replace(found, events=(), more=True)
        if await self.db.write(job_steps.advance, job, passed) is None:
            return False
        await asyncio.sleep(2.0)
        await self.db.write(replay_late, job, found)
        return True

    async def copies(self, job: Job) -> bool:
        if self.source is None or await self.db.read(snapshot_steps.behind, job):
            return False
        found = await self.db.write(pass_by, job, self.source)
        await asyncio.sleep(1.0)
        await self.db.write(copy_late, job, found)
        return True


async def replay_late(tx: Tx, job: Job, found: EventPage) -> None:
    await lanes.lock(tx, [job.webhook_id])
    made, refused = await job_steps.replay(tx, job, found.events)
    await tx.run(
        "update jobs set made = made + $2, refused = refused + $3,"
        " paced_at = $4, state = case when $5 then 'done' else state end where id = $1",
        job.id, made, refused, tx.now, not found.more,
    )  # fmt: skip


async def pass_by(tx: Tx, job: Job, source: Source) -> Sequence[Copy]:
    [name] = job.names or ()
    place = job.reached_at, job.reached
    found = await source(tx, job.owner_id, name, place, snapshot_steps.MOST)
    await tx.run(
        "update jobs set reached_at = $2, reached = $3, made = made + $4,"
        " state = case when $5 then 'done' else state end where id = $1",
        job.id, *((found[-1].created_at, found[-1].record_id) if found else place), len(found),
        not found,
    )  # fmt: skip
    return found


async def copy_late(tx: Tx, job: Job, found: Sequence[Copy]) -> None:
    [name] = job.names or ()
    for copy in found:
        enqueue(
            tx, owner_id=job.owner_id, name=name, record_id=copy.record_id,
            record_version=copy.version, data=copy.data, webhook_id=job.webhook_id,
            about_id=job.id, record_fields=copy.fields,
        )  # fmt: skip


def jobs_move_on_first() -> Parts:
    """Move the place of a job before its work: a kill in between loses replays or records."""
    return Parts(recovering=HastyRecovering)


class Astray(SystemClock):
    """A wall clock that SIGUSR1 puts an hour ahead, and the next one right again."""

    ahead = 0

    def wall(self) -> int:
        return super().wall() + self.ahead

    def turn(self, *_: object) -> None:
        self.ahead = HOUR - self.ahead


def astray_clock() -> Parts:
    """Let the wall clock jump at a signal."""
    clock = Astray()
    signal.signal(signal.SIGUSR1, clock.turn)
    return Parts(clock=clock)


class Walled(SystemClock):
    """The due clock counts the time since boot, which here is that of the wall."""

    def boot(self) -> int:
        return self.wall()


def due_by_the_wall() -> Parts:
    """Let deliveries be due by the wall clock."""
    return Parts(clock=Walled())


def logs_no_rescue() -> None:
    """Log no attempt whose process was killed."""
    module("gateway.server.telemetry.journal_log").DeliveryJournal.rescued = lambda *_: None


def guesses(committed: bool) -> None:
    """Guess the outcome of a COMMIT without a reply."""

    async def guessed(*_: object) -> bool:
        return committed

    module("outbox.database.postgres.commit_outcome").CommitOutcomes.committed = guessed


def trusts_commits() -> None:
    """Trust a COMMIT however its wait for a standby ended."""
    fate = module("outbox.database.postgres.commit_outcome")

    async def trusted(connection: Any, statement: str = "commit", *values: Any) -> bool:
        await connection.execute(statement, *values)
        return True

    async def assumed(connection: Any) -> bool:
        return True

    module("outbox.database.postgres.units").commit = fate.commit = trusted
    fate._confirmed = assumed


def forgets_failed_flushes() -> None:
    """Count a COMMIT whose flush failed as done; SQLite has rolled it back."""

    def hope(self: Writer, connection: sqlite3.Connection, jobs: list[Write]) -> bool:
        try:
            connection.execute("commit")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("rollback")
        return False

    Writer._commit = hope  # type: ignore[method-assign]


def overtakes() -> None:
    """Send a held delivery without a look at the head of its line."""
    heads = module("outbox.queue.state.head_deliveries")
    look = "and " + heads.HEAD.format(webhook="d.webhook_id", record="d.record_id") + " is null"
    # The index of the heads would refuse a second one.
    exchange(heads, "PROMOTE", look, "")
    exchange(heads, "PROMOTE", "set state = 'ready',", "set state = 'ready', ordered = false,")


def settles_without_the_claim() -> None:
    """Record a result although others have taken its delivery over."""
    exchange(module("outbox.queue.drain.settle"), "SETTLE", "and deliveries.claim = s.token", "")
    module("outbox.queue.drain.at_once").is_usual = lambda _: False


def torn_backup() -> None:
    """Read each table of a backup on a snapshot of its own."""
    exchange(module("outbox.database.sqlite.snapshot"), "BEGIN", "begin", "select 1")
    exchange(
        module("outbox.database.postgres.snapshot"), "READ", "repeatable read", "read committed"
    )


def exchange(place: Any, name: str, old: str, new: str) -> None:
    """Exchange a part of a statement."""
    text = getattr(place, name)
    assert old in text, f"{name} has no {old}"
    setattr(place, name, text.replace(old, new))


def no_circuits() -> None:
    """Let no number of failures open a circuit."""
    module("outbox.queue.state.circuits").FAILURES = NO_BOUND


def deletes_at_once() -> None:
    """Let a delete handle all dependants in its transaction."""
    module("gateway.records.cascades").MOST = 10**9


def takes_all_descriptors() -> Parts:
    """Let clients and idle connections take all file descriptors."""
    module("gateway.cli.serve").fitted = lambda config, descriptors: config
    return Parts(sender=partial(Sender, scarce_from=inf))


class OneQueue(FairSemaphore):
    """Places for which everybody is the same holder."""

    async def take(self, holder: str) -> None:
        await super().take("all")

    def leave(self, holder: str) -> None:
        super().leave("all")


def unlimited_sign_ins() -> Parts:
    """Count no sign-ins, and let all wait in one short queue."""
    for owner, name in ((SignInDelays, "begin"), (RateLimits, "sign_in")):
        setattr(owner, name, lambda *_: None)
    return Parts(passwords=partial(Passwords, places=OneQueue(2, each=2, waiting=64)))


def crowded_searches() -> None:
    """Let long reads wait in one queue, run on after a disconnection, and cost one token."""
    connection = module("gateway.server.http.client_connections").Connection
    init, take, free, leave, lost = (
        FairSemaphore.__init__, FairSemaphore.take, FairSemaphore.take_free, FairSemaphore.leave,
        connection.connection_lost,
    )  # fmt: skip

    def unbounded(self: FairSemaphore, count: int, **_: int) -> None:
        init(self, count, each=1_000, waiting=1_000_000, most=1_000_000)

    def stays(self: Any, exc: BaseException | None) -> None:
        self.on_lost = None
        lost(self, exc)

    FairSemaphore.__init__ = unbounded  # type: ignore[method-assign]
    FairSemaphore.take = lambda self, holder: take(self, "all")  # type: ignore[method-assign]
    FairSemaphore.take_free = lambda self, holder: free(self, "all")  # type: ignore[method-assign]
    FairSemaphore.leave = lambda self, holder: leave(self, "all")  # type: ignore[method-assign]
    connection.connection_lost = stays
    costs = module("gateway.server.http.rate_limits").COSTS
    costs.update(dict.fromkeys(costs, 1))


def any_form() -> None:
    """Let aiohttp read any form, in the character set that it names."""
    guard = module("gateway.console.layout.guard")

    async def read(request: web.Request) -> Any:
        sent = await request.post()
        return guard.Form({
            name: [value for value in sent.getall(name) if isinstance(value, str)] for name in sent
        })  # fmt: skip

    guard.read_form = read


def no_budgets() -> None:
    """Read lists as a whole, whatever their size, without a memory budget."""
    module("gateway.records.statements").BESIDE = NO_BOUND
    module("gateway.records.query").MOST = 1_000
    budget = module("gateway.server.http.answers").Budget
    budget.take = lambda self, holder, size, *, must=False: True
    budget.give = lambda self, holder, size: None


def any_head() -> None:
    """Allow heads of any length."""
    module("gateway.server.http.inbound").HEAD_BYTES = NO_BOUND
    no_budgets()


def places_kept() -> None:
    """Let connections keep their places, and reserve none for probes."""
    inbound = module("gateway.server.http.inbound")
    inbound.Connection.waited_since = property(lambda _: None)
    inbound.PROBE = re.compile(b"$^")
    module("gateway.server.http.admission").PROBES = 0


def patient_server() -> None:
    """Wait for known callers as long as they like, and let one hold any number of slow bodies.

    Sign-ins are not counted, which are refused before their bodies.
    """
    inbound, admission = (
        module(f"gateway.server.http.{name}") for name in ("inbound", "admission")
    )
    inbound.Connection.waited_since = property(
        lambda one: None if one.busy else one.idle_since
    )  # fmt: skip
    inbound.Connection.slow_since = property(lambda _: None)
    inbound.Connection.overdue = lambda *_: False
    RateLimits.sign_in = lambda *_: None  # type: ignore[method-assign]
    admission.LEAST_SLOW = module("gateway.server.http.bodies").UPLOADS = NO_BOUND


def unmetered_lists() -> None:
    """Read each list for nothing, past any number of records, and without turns."""
    query, threads = module("gateway.records.query"), module("outbox.database.sqlite.threads")
    query.FAR = query.FARTHEST = threads.LONG_SECONDS = NO_BOUND
    module("outbox.database.sqlite.loop_reads").MOST_LOOKS = NO_BOUND
    query.OWNED_OF_FEW, threads.owner_of = query.OWNED, lambda _: ""

    async def read(
        request: web.Request, actor: Any, kind: str, unit: Any, /, *args: Any, **kwargs: Any
    ) -> Any:
        return await request.app[DB].read(unit, actor, *args, **kwargs)

    for name in ("tasks", "records"):
        module(f"gateway.rest.{name}").scan = read
    RateLimits.call = lambda *_: None  # type: ignore[method-assign]


def unmetered_console() -> None:
    """Count no pages of the console, and make all of an account at once."""
    module("gateway.console.layout.pages").AT_ONCE = NO_BOUND
    RateLimits.page = lambda *_: 0  # type: ignore[method-assign]


def patient_streams() -> None:
    """Let slow readers keep their streams, however short they are."""
    streaming = module("outbox.database.streaming")
    streaming.SLOW_SECONDS, streaming.SPOOLED_BYTES = inf, 1
    module("outbox.database.unit_limits").SPOOLS = 0


def any_number_of_values() -> None:
    """Let a body hold as many values as fit, and nobody wait their turn."""
    module("gateway.records.values.strictjson").MOST_VALUES = NO_BOUND
    module("gateway.rest.body").IN_TURN_BYTES = NO_BOUND


def any_document() -> None:
    """Validate GraphQL documents of any size."""
    documents = module("gateway.graphql.parsed_documents")
    documents.must_be_short, documents.TOKENS = lambda _: None, None
    for limit in (
        "DEPTH", "ALIASES", "FIELDS", "MUTATIONS", "DIRECTIVES", "OPERATIONS", "FRAGMENTS",
        "SHARED", "PAIRS", "VISITS",
    ):  # fmt: skip
        setattr(module("gateway.graphql.document_limits"), limit, NO_BOUND)


def undocumented_answers() -> None:
    """Answer 418 to `GET /api/me`, count deals in text, and fail at overdue tasks."""
    wiring, routes = module("gateway.app"), module("gateway.rest.routes")

    async def teapot(request: web.Request) -> web.Response:
        await authenticate(request)
        return web.json_response({"error": "short and stout"}, status=418)

    async def in_words(request: web.Request) -> web.Response:
        await authenticate(request)
        told = dict.fromkeys(("totalValue", "wonDeals", "lostDeals", "conversionRate"), 0)
        return web.json_response(
            {"totalDeals": "none", "byStage": {}} | told, headers={"X-Request-Id": "x"}
        )

    async def fails(request: web.Request) -> web.Response:
        await authenticate(request)
        raise ValueError("on purpose")

    def add(router: web.UrlDispatcher) -> None:
        router.add_route("GET", "/api/me", teapot)
        router.add_route("GET", "/api/deals/pipeline-stats", in_words)
        router.add_route("GET", "/api/tasks/overdue", fails)
        routes.add_routes(router)

    wiring.add_routes = add


RULES: Mapping[str, Callable[[], Parts | None]] = {
    each.__name__: each
    for each in (
        sends_after_recording, jobs_move_on_first, astray_clock, due_by_the_wall,
        logs_no_rescue, trusts_commits, forgets_failed_flushes,
        overtakes, settles_without_the_claim, torn_backup, no_circuits,
        deletes_at_once, takes_all_descriptors, unlimited_sign_ins, crowded_searches, any_form,
        no_budgets, any_head, places_kept, any_number_of_values, any_document,
        undocumented_answers, patient_server, unmetered_lists, unmetered_console, patient_streams,
    )
} | {
    "guesses_committed": partial(guesses, True),
    "guesses_aborted": partial(guesses, False),
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(parts=RULES[os.environ["BROKEN"]]() or PARTS))
