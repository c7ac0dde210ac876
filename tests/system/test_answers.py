"""`unavailable` means that nothing was written, `outcome_unknown` that it may have been.

Connections are cut during COMMIT, and the server stays out of reach until the requests have their
answers, so that nobody can tell the outcome of these COMMITs.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.errors import OutcomeUnknown
from outbox.ids import Ids
from tests.support.carts import sell
from tests.support.checkouts import check_out, put
from tests.support.cluster import Cluster
from tests.support.databases import SOURCES
from tests.support.faultproxy import Cut, FaultProxy, fault_proxy
from tests.support.ledger import query
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.shop import open_shop
from tests.support.site import serving

CUTS: Sequence[Cut] = ("before", "sent", "answered")
ADVICE = (
    "It may have been written. Repeat it with the same Idempotency-Key, or look before repeating."
)


@asynccontextmanager
async def cuttable() -> AsyncIterator[tuple[RestApi, FaultProxy, str]]:
    """The product on a server behind a proxy that cuts COMMITs; and the server's own address."""
    with tempfile.TemporaryDirectory(prefix="carteiro-answers-") as home:
        folder = Path(home)
        folder.chmod(0o755)
        cluster = Cluster(folder / "data")
        try:
            await cluster.create()
            await cluster.start()
            async with fault_proxy(cluster.port) as proxy:
                url = cluster.url.replace(str(cluster.port), str(proxy.port))
                db = await database.open(url, clock=SystemClock(), ids=Ids(), pool_size=40)
                try:
                    await migrate(db, SOURCES)
                    async with serving(db, UNLIMITED) as site:
                        yield RestApi(site), proxy, cluster.url
                finally:
                    await db.close()
        finally:
            await cluster.close()


async def create(who: Person, name: str, **headers: str) -> Reply:
    return await who.post("/api/contacts", {"name": name}, **headers)


async def cut_creates(
    who: Person, proxy: FaultProxy, cuts: Sequence[Cut], prefix: str, *, keyed: bool
) -> dict[str, Reply]:
    """Create a contact per cut, each with its COMMIT cut; return the answers by name."""

    async def one(name: str) -> Reply:
        return await create(who, name, **({"Idempotency_Key": name} if keyed else {}))

    def all_of(prefix: str) -> list[str]:
        return [f"{prefix}{number}" for number in range(len(cuts))]

    # Each needs an open connection, as nobody gets a new one from then on.
    warm = await asyncio.gather(*(one(name) for name in all_of(f"{prefix}open-")))
    assert {reply.status for reply in warm} == {201}
    ordered = [asyncio.create_task(proxy.cut_next(cut, "insert into contacts")) for cut in cuts]
    # The caller is looked up anew after a second.
    assert (await who.get("/api/me")).status == 200
    proxy.refusing = True
    names = all_of(prefix)
    sent = asyncio.gather(*(one(name) for name in names))
    while keyed and proxy.orders and not sent.done():
        await asyncio.sleep(0.01)
    # No connection is left, so these do not even begin.
    late = [f"{prefix}late-{number}" for number in range(3)]
    answers = [*(await sent), *(await asyncio.gather(*(one(name) for name in late)))]
    names += late
    proxy.refusing = False
    # Those of a group share one COMMIT.
    for order in ordered:
        order.cancel()
    proxy.orders.clear()
    return dict(zip(names, answers, strict=True))


async def names_there(url: str) -> Counter[str]:
    return Counter(name for (name,) in await query(url, "select name from contacts"))


async def check(rounds: int) -> None:
    """Cut `3 * rounds` creates with a key, and as many without one."""
    async with cuttable() as (api, proxy, url):
        who = await api.person()
        # So that connections are open and the types of the columns are known.
        assert (await create(who, "before", Idempotency_Key="before")).status == 201
        cuts = [cut for cut in CUTS for _ in range(rounds)]
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
        assert codes["outcome_unknown", 1], codes
        assert codes["outcome_unknown", 0], codes
        assert codes["unavailable", 0], codes
        for name in keyed:
            before = there[name]
            again = await create(who, name, Idempotency_Key=name)
            assert again.status == 201, again.text
            assert again.headers.get("Idempotent-Replayed") == ("true" if before else None), name
        after = await names_there(url)
        assert {after[name] for name in keyed} == {1}
        assert all(after[name] == there[name] for name in plain)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_a_write_of_unknown_outcome_is_no_refusal() -> None:
    await check(1)


@pytest.mark.slow
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


@pytest.mark.proof
async def test_no_answer_unavailable_of_sixty_cut_commits_has_a_row() -> None:
    await check(10)
