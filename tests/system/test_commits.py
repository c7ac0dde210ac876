"""COMMITs that are cut, or race with the query of their outcome: the answer is true (R11).

`unavailable` means that nothing was written, `outcome_unknown` that it may have been. Connections
are cut during COMMIT. The server is there, so that the product can ask it, or stays out of reach
until the requests have their answers, so that nobody can tell the outcome.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.postgres.commit_outcome import CommitOutcomes, mark, marking
from outbox.database.postgres.server import Server
from outbox.database.sql import insert_text
from outbox.database.transaction import Tx
from outbox.errors import OutcomeUnknown
from outbox.events import INSERT
from outbox.ids import Ids
from tests.support.carts import sell
from tests.support.checkouts import check_out, put
from tests.support.cluster import own_server
from tests.support.databases import ORDINARY, SOURCES
from tests.support.deployed import deployed
from tests.support.faultproxy import Cut, FaultProxy, fault_proxy
from tests.support.faults import shows
from tests.support.ledger import Verdict, query
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.shop import open_shop
from tests.support.site import serving
from tests.system.staging import address

SEED = 50260
CUTS: Sequence[Cut] = ("before", "sent", "answered")
WRITE = "insert into contacts"
HUNG_SECONDS = 10.0
ADVICE = (
    "It may have been written. Repeat it with the same Idempotency-Key, or look before repeating."
)


async def run_commit_cuts(rounds: int, seed: int, *, broken: str = "") -> Verdict:
    """Cut `rounds` client writes at COMMIT, and as many of the drain's.

    Half of the cuts come before the server gets the COMMIT, the others drop its reply.
    """
    cuts: list[Cut] = ["before", "sent", "before", "answered"]
    async with own_server() as server, fault_proxy(server.port) as proxy:
        url, behind = await server.ordinary_url(), (str(server.port), str(proxy.port))
        async with deployed(
            "postgres", seed, url=url, through=lambda url: url.replace(*behind), broken=broken
        ) as site:
            async with site.writing():
                await site.more(10)
                for number in range(rounds):
                    for statement in (WRITE, "update deliveries"):
                        await proxy.cut_next(cuts[number % len(cuts)], statement)
                        await site.more(site.dice.randint(3, 12))
            survived = site.product.running
            verdict = await site.verdict("cuts during COMMIT", unknown_allowed=True)
    load = site.load
    slowest = max(answer.seconds for answer in load.answers)
    verdict.find(not survived, "the product ended")
    verdict.find(len(load.broken), "writes without an answer")
    verdict.find(len(load.wrong), f"refusals other than a good 503: {load.wrong[:3]}")
    verdict.find(slowest > HUNG_SECONDS, f"an answer took {slowest:.1f} s")
    verdict.figures |= {"refused": len(load.refused), "slowest_s": round(slowest, 2)}
    return verdict


async def test_connections_cut_during_commit() -> None:
    (await run_commit_cuts(20, SEED)).must_hold()


@pytest.mark.parametrize(
    ("broken", "figure"), [("guesses_aborted", "unexpected"), ("guesses_committed", "lost")]
)
async def test_guessing_the_outcome_is_seen(broken: str, figure: str) -> None:
    assert await shows(partial(run_commit_cuts, 4, broken=broken), SEED, figure)


@asynccontextmanager
async def cuttable() -> AsyncIterator[tuple[RestApi, FaultProxy, str]]:
    """The product on a server behind a proxy that cuts COMMITs; and the server's own address."""
    async with own_server() as server, fault_proxy(server.port) as proxy:
        url = server.url.replace(str(server.port), str(proxy.port))
        db = await database.open(url, clock=SystemClock(), ids=Ids(), pool_size=40)
        try:
            await migrate(db, SOURCES)
            async with serving(db, UNLIMITED) as site:
                yield RestApi(site), proxy, server.url
        finally:
            await db.close()


async def create(who: Person, name: str, *, keyed: bool) -> Reply:
    headers = {"Idempotency_Key": name} if keyed else {}
    return await who.post("/api/contacts", {"name": name}, **headers)


async def cut_creates(
    who: Person, proxy: FaultProxy, cuts: Sequence[Cut], prefix: str, *, keyed: bool
) -> dict[str, Reply]:
    """Create a contact per cut, each with its COMMIT cut; return the answers by name."""

    async def each(names: Sequence[str]) -> list[Reply]:
        return await asyncio.gather(*(create(who, name, keyed=keyed) for name in names))

    # Each needs an open connection, as nobody gets a new one from then on.
    warm = await each([f"{prefix}open-{number}" for number in range(len(cuts))])
    assert {reply.status for reply in warm} == {201}
    ordered = [asyncio.create_task(proxy.cut_next(cut, WRITE)) for cut in cuts]
    # The caller is looked up anew after a second.
    assert (await who.get("/api/me")).status == 200
    proxy.refusing = True
    names = [f"{prefix}{number}" for number in range(len(cuts))]
    sent = asyncio.create_task(each(names))
    while keyed and proxy.orders and not sent.done():
        await asyncio.sleep(0.01)
    # No connection is left, so these do not even begin.
    late = [f"{prefix}late-{number}" for number in range(3)]
    answers = [*(await sent), *(await each(late))]
    proxy.refusing = False
    # Those of a group share one COMMIT.
    for order in ordered:
        order.cancel()
    proxy.orders.clear()
    return dict(zip([*names, *late], answers, strict=True))


async def names_there(url: str) -> Counter[str]:
    return Counter(name for (name,) in await query(url, "select name from contacts"))


async def test_no_answer_unavailable_of_sixty_cut_commits_has_a_row() -> None:
    async with cuttable() as (api, proxy, url):
        who = await api.person()
        # So that connections are open and the types of the columns are known.
        assert (await create(who, "before", keyed=True)).status == 201
        cuts = [cut for cut in CUTS for _ in range(10)]
        keyed = await cut_creates(who, proxy, cuts, "keyed-", keyed=True)
        plain = await cut_creates(who, proxy, cuts, "plain-", keyed=False)
        answers = keyed | plain
        there = await names_there(url)
        codes = Counter(
            (reply.body.get("code", reply.status), there[name]) for name, reply in answers.items()
        )
        print(json.dumps({"cut": len(answers), "answers": {str(k): n for k, n in codes.items()}}))
        for name, reply in answers.items():
            if reply.status == 201:
                # One that came late, and met a connection that was left.
                assert there[name] == 1, name
                continue
            assert (reply.status, reply.headers["Retry-After"]) == (503, "1"), (name, reply.text)
            if reply.body["code"] == "unavailable":
                assert not there[name], name
            else:
                assert (reply.body["code"], reply.body["error"]) == ("outcome_unknown", ADVICE)
        for seen in (("outcome_unknown", 1), ("outcome_unknown", 0), ("unavailable", 0)):
            assert codes[seen], codes
        for name in keyed:
            before = there[name]
            again = await create(who, name, keyed=True)
            assert again.status == 201, again.text
            assert again.headers.get("Idempotent-Replayed") == ("true" if before else None), name
        after = await names_there(url)
        assert {after[name] for name in keyed} == {1}
        assert all(after[name] == there[name] for name in plain)


async def test_others_hear_of_a_change_that_may_be_committed() -> None:
    """Such as the nodes that keep a webhook open: after a COMMIT nobody tells them later."""
    async with cuttable() as (api, proxy, url):

        async def change(tx: Tx) -> None:
            await tx.run("insert into duties (name, began_at) values ($1, 0)", "test")
            tx.changed.add("w" * 24)
            tx.wake = True
            # The connection is open by now; nobody gets another one to ask.
            proxy.refusing = True

        heard: list[object] = []
        api.db.on_change(heard.append)
        api.db.listen(lambda: heard.append("work"))
        ordered = asyncio.create_task(proxy.cut_next("answered", "insert into duties"))
        with pytest.raises(OutcomeUnknown):
            await api.db.write(change)
        await ordered
        proxy.refusing = False
        assert {"w" * 24} in heard
        assert "work" in heard
        assert await query(url, "select 1 from duties where name = 'test'")


async def test_a_checkout_of_unknown_outcome_is_repeated_with_its_key() -> None:
    cuts: tuple[Cut, ...] = ("before", "answered")
    async with cuttable() as (api, proxy, url):
        shop = await open_shop(api)
        product = await sell(shop, 30, stock=10)
        for made, cut in enumerate(cuts):
            browser = shop.browser()
            await put(browser, product)
            ordered = asyncio.create_task(proxy.cut_next(cut, "insert into orders"))
            # It has an open connection, and gets no other one to ask.
            proxy.refusing = True
            assert (await check_out(browser, idempotencyKey=cut)).code == "OUTCOME_UNKNOWN"
            await ordered
            proxy.refusing = False
            assert await query(url, "select count(*) from orders") == [(made + (cut != "before"),)]
            again = await check_out(browser, idempotencyKey=cut)
            assert again.data["checkout"]["order"]["number"]
            assert await query(url, "select count(*) from orders") == [(made + 1,)]
        await shop.close()


TRIALS = 20_000
ASKERS = 8
ROLLED_BACK = 10
"""One trial in this many rolls back."""
WITHOUT_EVENT = 4
"""One trial in this many queries without an event, as a settle does."""
ONE_IN_TIME = 20
"""One COMMIT in this many comes before the query, to measure how long a query takes."""
AIM = 0.5
"""The others come at a random moment of its first half, during the status look-up."""
ONE_EVENT = insert_text(INSERT.table, INSERT.columns, 1, "")
INSERTED = ("0" * 24, "x.y", "r", 1, None, 0, None, None, b"{}", "d")


async def test_no_commit_is_judged_wrongly_while_it_runs() -> None:
    counts: Counter[str] = Counter()
    async with address("postgres", ORDINARY) as url, asyncio.TaskGroup() as group:
        for asker in range(ASKERS):
            numbers = range(asker, TRIALS, ASKERS)
            group.create_task(_race(url, numbers, random.Random(1 + asker), counts))
    print(json.dumps(counts))
    assert not any(counts[what] for what in ("twice", "missing", "unknown")), counts
    assert counts["raced"] >= TRIALS / 4, "too few ended while the question was open"


class _Kept:
    """A server that keeps one connection for all queries: a new one takes longer than a query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def connect(self) -> _Kept:
        return self

    async def close(self, timeout: float | None = None) -> None: ...

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def _race(url: str, numbers: range, dice: random.Random, counts: Counter[str]) -> None:
    connection, asking = await asyncpg.connect(url), await asyncpg.connect(url)
    fates = CommitOutcomes(cast(Server, _Kept(asking)))
    lasts = 0.0
    try:
        for place, number in enumerate(numbers):
            wait = 0.0 if place % ONE_IN_TIME == 0 else dice.uniform(0, AIM) * lasts
            seconds = await _trial(connection, fates, number, dice, wait, counts)
            if not wait:
                lasts = (lasts + seconds) / 2 if lasts else seconds
    finally:
        await asking.close()
        await connection.close()


async def _trial(
    connection: Any, fates: CommitOutcomes, number: int, dice: random.Random, wait: float,
    counts: Counter[str],
) -> float:  # fmt: skip
    """Run one transaction that ends `wait` after its query; return the query's duration."""
    loop = asyncio.get_running_loop()
    event_id = f"{number:024x}"
    await connection.execute("begin")
    row = await connection.fetchrow(marking(ONE_EVENT), event_id, *INSERTED)
    marked = await mark(connection, row, (INSERT, event_id))
    if number % WITHOUT_EVENT == 0:
        marked = replace(marked, wrote=None)
    ends = "rollback" if dice.randrange(ROLLED_BACK) == 0 else "commit"
    if not wait:
        await connection.execute(ends)
    began = loop.time()
    asked = asyncio.create_task(fates.committed(marked, began + HUNG_SECONDS))
    if wait:
        await asyncio.sleep(wait)
        counts["raced"] += not asked.done()
        await connection.execute(ends)
    counts["trials"] += 1
    try:
        took_place = await asked
        # A write reported as not committed runs twice; one reported as committed is acknowledged.
        counts["twice"] += ends == "commit" and not took_place
        counts["missing"] += ends == "rollback" and took_place
    except OutcomeUnknown:
        counts["unknown"] += 1
    return loop.time() - began
