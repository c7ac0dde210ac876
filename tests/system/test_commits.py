"""COMMITs that are cut, or race with the query of their outcome: the answer is true (R11).

`unavailable` means that nothing was written, `outcome_unknown` that it may have been. Connections
are cut during COMMIT. The server is there, so that the product can ask it, or stays out of reach
until the requests have their answers, so that nobody can tell the outcome.
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast

import asyncpg
import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.postgres.commit_outcome import CommitOutcomes, mark, marking
from outbox.database.postgres.hosts import Session as DriverSession
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
from tests.support.faults import shows
from tests.support.ledger import Verdict, query
from tests.support.long_limits import served_limits
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.shop import open_shop
from tests.support.site import serving
from tests.system.staging import address

Cut = Literal["before", "sent", "answered"]
"""Do not forward the COMMIT; or forward it and close at once; or drop its reply."""

SSL_REQUEST = 80877103
TURN = "drain_at_once_"
"""The name of the function by which the drain settles, claims and fans out in one statement."""
ANSWER_SECONDS = 5.0


@dataclass
class _Order:
    cut: Cut
    statement: bytes
    done: asyncio.Future[None]


@dataclass
class FaultProxy:
    """`port` leads to the server; `cut_next` breaks one connection."""

    upstream: int
    port: int = 0
    orders: list[_Order] = field(default_factory=list)
    refusing: bool = False
    """Whether new connections are closed at once; open ones stay."""

    async def cut_next(self, cut: Cut, statement: str = "", seconds: float = 20.0) -> None:
        """Cut the next COMMIT of a transaction with a statement that has this text (any, if empty).

        Return after the cut.
        """
        done = asyncio.get_running_loop().create_future()
        self.orders.append(_Order(cut, statement.encode(), done))
        async with asyncio.timeout(seconds):
            await done

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, writer, up_writer)
        pumps = [asyncio.create_task(link.forth(reader)), asyncio.create_task(link.back(up_reader))]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)
            writer.transport.abort()
            up_writer.transport.abort()


@asynccontextmanager
async def fault_proxy(upstream: int) -> AsyncIterator[FaultProxy]:
    """Run a proxy on a free port of 127.0.0.1 to `upstream`, a port there too."""
    proxy = FaultProxy(upstream)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


class _Link:
    """One client connection and its own connection to the server."""

    def __init__(
        self, proxy: FaultProxy, client: asyncio.StreamWriter, server: asyncio.StreamWriter
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._statements: dict[bytes, bytes] = {}
        self._ran: set[bytes] = set()
        self._begun = False
        self._cut: _Order | None = None
        self._answered = asyncio.Event()

    async def forth(self, reader: asyncio.StreamReader) -> None:
        """Forward from client to server, message by message."""
        try:
            while True:
                head = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack("!I", head)[0] - 4)
                self._server.write(head + body)
                if struct.unpack("!I", body[:4])[0] != SSL_REQUEST:
                    break
            while True:
                kind = await reader.readexactly(1)
                head = await reader.readexactly(4)
                body = await reader.readexactly(struct.unpack("!I", head)[0] - 4)
                order = self._note(kind, body)
                if order is not None:
                    await self._carry_out(order, kind + head + body)
                    return
                self._server.write(kind + head + body)
                await self._server.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def back(self, reader: asyncio.StreamReader) -> None:
        """Forward from server to client."""
        try:
            while data := await reader.read(65_536):
                if self._cut is not None:
                    self._answered.set()
                    continue
                self._client.write(data)
                await self._client.drain()
        except ConnectionError:
            return

    def _note(self, kind: bytes, body: bytes) -> _Order | None:
        """Follow the transaction; return the order to carry out at the COMMIT it applies to."""
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._statements[name] = text.strip().lower()
        elif kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            self._ran.add(self._statements.get(name, b""))
        elif kind == b"S" and not self._begun:
            ran, self._ran = self._ran, set()
            alone = (b"insert into", TURN.encode())
            return self._order(ran) if any(some in text for text in ran for some in alone) else None
        elif kind == b"Q":
            text = body.rstrip(b"\0").strip().lower()
            if text.startswith(b"begin"):
                self._ran.clear()
                self._begun = True
            elif text in (b"commit", b"rollback"):
                self._begun = False
                # A query that follows without a transaction has nothing to do with them.
                ran, self._ran = self._ran, set()
                return self._order(ran) if text == b"commit" else None
        return None

    def _order(self, ran: set[bytes]) -> _Order | None:
        """Return the order for a COMMIT of these statements."""
        for order in self._proxy.orders:
            if any(order.statement in text for text in ran):
                self._proxy.orders.remove(order)
                return order
        return None

    async def _carry_out(self, order: _Order, commit: bytes) -> None:
        if order.cut != "before":
            self._cut = order
            self._server.write(commit)
            if order.cut == "sent":
                self._client.transport.abort()
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._answered.wait()
            except TimeoutError:
                pass
        self._client.transport.abort()
        self._server.transport.abort()
        order.done.set_result(None)


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
                    for statement in (WRITE, TURN):
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
        # Its answers about lost COMMITs come when these limits end.
        with served_limits():
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
            if name in keyed and reply.body.get("code") == "idempotency_in_progress":
                # On a slow machine the request was tried again, and met its own key.
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
INSERTED = ("0" * 24, "x.y", "r", 1, None, 0, None, None, b"{}", "d", None)


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
    connection = await asyncpg.connect(url)
    asking = await asyncpg.connect(url, connection_class=DriverSession)
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
