"""The board of deals: its columns and figures, what a move does, and what it costs."""

import asyncio
import re
from collections.abc import AsyncIterator
from html import unescape
from typing import Any

import pytest

from gateway.domain.sales import boards
from outbox import database
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.drain.fanout import fan_out
from outbox.queue.state.claimed_deliveries import Capacity
from tests.conformance.test_statements import Sent, fresh, noted
from tests.support.clocks import Stopped
from tests.support.console import CONFIG, Guest, Seen, guest
from tests.support.drain import rows
from tests.support.rest import Person, RestApi
from tests.support.site import serving

BOARD = "/console/deals/board"


async def deal(api: Person, title: str, **fields: Any) -> dict[str, Any]:
    made = await api.post("/api/deals", {"title": title, "value": 10, **fields})
    assert made.status == 201, made.text
    return dict(made.body)


def columns(page: Seen) -> list[tuple[str, list[str]]]:
    """Return the target of each column with the titles of its cards."""
    found = []
    for part in page.html.split('<section class="lane"')[1:]:
        [target] = re.findall('data-target="stage:([^"]*)"', part)
        titles = re.findall('<a class="title"[^>]*><bdi>([^<]*)', part)
        found.append((unescape(target), [unescape(title) for title in titles]))
    return found


def figures(page: Seen) -> dict[str, tuple[str, str]]:
    """Return number and sum by what they are of."""
    form = '<p class="figures" data-of="([^"]*)"><b>([^<]*)</b> · <span class="money">([^<]*)'
    return {unescape(of): (count, value) for of, count, value in re.findall(form, page.html)}


async def scripted(guest: Guest, made: dict[str, Any], of: str = "", **fields: str) -> Seen:
    """Send a move of a card of the stage `of`, as the script of the board does."""
    page = await guest.get(BOARD)
    sent = {"csrf_token": page.csrf, "version": "1", "from": of, **fields}
    return await guest.post(f"/console/deals/{made['id']}/move", list(sent.items()), HX_Request="1")


async def test_a_new_deal_of_the_board_begins_in_its_first_stage(maria: Guest, api: Person) -> None:
    for stages, first in ((None, "lead"), (["café & chá", "fim"], "café & chá")):
        await api.put("/api/settings/pipeline", {"stages": stages})
        [link] = re.findall('href="(/console/deals/new[^"]*)"', (await maria.get(BOARD)).html)
        form = await maria.get(unescape(link))
        typed = re.search('name="stage" value="([^"]*)"', form.html)
        assert typed is not None
        assert unescape(typed[1]) == first


async def test_a_deal_without_a_stage_stands_in_the_first_column(
    maria: Guest, api: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "CARDS", 2)
    made = [await deal(api, f"d{n}", **({"stage": "lead"} if n % 2 else {})) for n in range(5)]
    page = await maria.get(BOARD)
    assert columns(page)[0] == ("lead", ["d4", "d3"])
    assert len(columns(page)) == 5
    assert figures(page)["stage:lead"] == ("5", "R$50.00")
    more = await maria.get(page.link("Show more"), HX_Request="1")
    assert re.findall("<bdi>(d[0-9])", more.html) == ["d2", "d1"]
    moved = await scripted(maria, made[4], act="move", stage="proposal", of="lead")
    assert figures(moved)["stage:lead"] == ("4", "R$40.00")
    # A refused one goes back to the column where it was.
    page = await scripted(maria, made[2], act="move", stage="x" * 65, of="lead")
    assert (page.status, 'data-stage="lead"' in page.html) == (400, True)
    assert (
        '<option value="lead" selected>'
        in (await maria.get(f"/console/deals/{made[2]['id']}/move")).html
    )


async def test_deals_of_orders_have_a_board_of_their_own(maria: Guest, api: Person) -> None:
    assert "Shop orders" not in (await maria.get(BOARD)).html
    sale = await deal(api, "supply", stage="lead")
    order = await deal(api, "Order ORD-000001", stage="checkout")
    page = await maria.get(BOARD)
    assert [titles for _, titles in columns(page)] == [["supply"], [], [], [], []]
    assert "Shop orders (1)" in page.html
    shop = await maria.get(f"{BOARD}?shop=1")
    assert columns(shop) == [("checkout", ["Order ORD-000001"])]
    # Won and lost deals count on the board where they were.
    await scripted(maria, sale, act="won", of="lead")
    won = await scripted(maria, order, act="won", of="checkout")
    assert figures(won)["won"] == ("1", "R$10.00")
    assert figures(await maria.get(BOARD))["won"] == ("1", "R$10.00")
    # Who names the stage has it among the others.
    await api.put("/api/settings/pipeline", {"stages": ["checkout", "paid"]})
    await deal(api, "Order ORD-000002", stage="checkout")
    page = await maria.get(BOARD)
    assert columns(page)[0] == ("checkout", ["Order ORD-000002"])
    assert "Shop orders" not in page.html


async def test_a_webhook_is_told_when_a_deal_is_won(maria: Guest, api: Person) -> None:
    """Its filter is on the status, which the event's data lacks."""
    webhook = await maria.webhook(
        "https://hooks.example.com/won", "deal.updated",
        conditions="status = won\nstatus changed",
    )  # fmt: skip
    assert webhook.status == 200
    made = await deal(api, "supply", stage="lead")
    await scripted(maria, made, act="move", stage="proposal", of="lead")
    await scripted(maria, made, act="won", version="2", of="proposal")
    await api.put(f"/api/deals/{made['id']}", {"title": "more", "status": "won"})
    await maria.site.db.write(fan_out, Capacity("node", "claim-0", 0, 0, 0, {}, 0))
    [got] = await maria.site.db.read(
        rows, "select e.record_version from deliveries d join events e on e.id = d.event_id"
    )
    assert got["record_version"] == 3


async def test_a_deal_ends_without_scripts(maria: Guest, api: Person) -> None:
    for end, reason in (("won", None), ("lost", "Too expensive")):
        made = await deal(api, "supply", stage="lead")
        path = f"/console/deals/{made['id']}/move"
        form = await maria.get(path)
        assert '<option value="lead" selected>' in form.html
        page = await maria.submit(path, version="1", act=end, lostReason=reason or "")
        assert page.path == f"{BOARD}?done=deal_{end}"
        assert figures(page)[end] == ("1", "R$10.00")
        assert ("lead", []) in columns(page)
        after = (await api.get(f"/api/deals/{made['id']}")).body
        assert (after["status"], after.get("lostReason")) == (end, reason)


async def test_a_lost_race_is_told_and_changes_nothing(maria: Guest, api: Person) -> None:
    made = await deal(api, "supply", stage="lead")
    await api.put(f"/api/deals/{made['id']}", {"stage": "closing"})
    page = await scripted(maria, made, act="move", stage="proposal", of="lead")
    assert page.status == 409
    assert 'data-said="Somebody changed “supply” meanwhile' in page.html
    # The card goes where the deal is, with the version that moves it next.
    assert 'data-version="2" ' in page.html
    assert 'data-stage="closing"' in page.html
    plain = await maria.submit(
        f"/console/deals/{made['id']}/move", version="1", act="move", stage="proposal"
    )
    assert plain.status == 409
    assert "It is in closing now." in plain.html
    assert (await api.get(f"/api/deals/{made['id']}")).body["stage"] == "closing"


async def test_of_two_moves_at_once_one_is_made(maria: Guest, api: Person) -> None:
    made = await deal(api, "supply", stage="lead")
    before = len(await RestApi(maria.site).events())
    token = (await maria.get(BOARD)).csrf
    sent = [("csrf_token", token), ("version", "1"), ("act", "move"), ("from", "lead")]
    path = f"/console/deals/{made['id']}/move"
    stages = ("qualified", "proposal", "closing")
    pages = await asyncio.gather(
        *(maria.post(path, [*sent, ("stage", stage)], HX_Request="1") for stage in stages)
    )
    assert sorted(page.status for page in pages) == [200, 409, 409]
    [won] = [stage for stage, page in zip(stages, pages, strict=True) if page.status == 200]
    assert (await api.get(f"/api/deals/{made['id']}")).body["stage"] == won
    assert len(await RestApi(maria.site).events()) == before + 1


async def test_an_unknown_act_and_a_forged_form_change_nothing(maria: Guest, api: Person) -> None:
    made = await deal(api, "supply", stage="lead")
    assert (await scripted(maria, made, act="explode")).status == 404
    forged = [("csrf_token", "0" * 64), ("version", "1"), ("act", "won")]
    assert (await maria.post(f"/console/deals/{made['id']}/move", forged)).status == 403
    assert (await api.get(f"/api/deals/{made['id']}")).body["status"] == "open"


@pytest.fixture
async def traced(db_url: str) -> AsyncIterator[tuple[Guest, list[Sent]]]:
    """A signed-in user, and each statement of the database."""
    with noted() as sent:
        # Where time passes, a busy machine interrupts a read of SQLite, which runs again.
        db = await database.open(db_url, clock=Stopped(), ids=Ids(), serving=True)
        async with serving(db, CONFIG) as site:
            await site.user("maria@example.com")
            async with guest(site) as maria:
                await maria.sign_in("maria@example.com")
                yield maria, sent
        await db.close()


INSERT = """
insert into deals (id, owner_id, version, created_at, title, value, currency, stage, status,
  contact_ids)
values ($1, $2, 1, $3, $4, 100, 'BRL', $5, $6, '[]')
"""


async def fill(db: Database, count: int, stages: int, status: str = "open") -> None:
    """Insert deals of Maria, over so many stages, all newer than those before."""

    async def unit(tx: Tx) -> None:
        [user] = await rows(tx, "select id from users where email = 'maria@example.com'")
        [before] = await rows(tx, "select count(*) as n from deals")
        await tx.many(INSERT, [
            (f"{n:024x}", user["id"], 1_000_000 + n, f"Deal {n}", f"stage {n % stages:03}", status)
            for n in range(before["n"], before["n"] + count)
        ])  # fmt: skip

    await db.write(unit)


def asked(sent: list[Sent]) -> int:
    """Return how many statements read or wrote something of deals."""
    return len([text for text in sent if re.search(r"\b(deals|deal_totals|pipelines)\b", text)])


async def test_thousands_of_deals_of_a_stage_cost_what_fifty_do(
    traced: tuple[Guest, list[Sent]],
) -> None:
    maria, sent = traced
    await fill(maria.site.db, 3_000, 1)
    await fill(maria.site.db, 500, 1, "won")
    await fresh(sent)
    page = await maria.get(BOARD)
    # PostgreSQL sends the first again when its plan is new.
    assert asked(sent) in (3, 4), sent
    [(_, cards)] = [one for one in columns(page) if one[0] == "stage 000"]
    assert (cards[0], cards[-1], len(cards)) == ("Deal 2999", "Deal 2950", 50)
    assert figures(page)["stage:stage 000"] == ("3,000", "R$3,000.00")
    assert len(page.html) < 100_000
    further = page.link("Show more")
    await fresh(sent)
    part = await maria.get(further, HX_Request="1")
    assert asked(sent) == 1, sent
    assert re.findall("<bdi>(Deal [0-9]+)", part.html)[:1] == ["Deal 2949"]
    assert "<html" not in part.html
    # Without scripts the link shows a page of its own.
    assert "<html" in (await maria.get(further)).html
    await fresh(sent)
    fields = {"version": "1", "act": "move", "stage": "next", "from": "stage 000"}
    moved = await maria.post(
        f"/console/deals/{2_999:024x}/move",
        [("csrf_token", page.csrf), *fields.items()],
        HX_Request="1",
    )
    assert moved.status == 200
    assert figures(moved)["stage:stage 000"] == ("2,999", "R$2,999.00")
    assert asked(sent) < 20, sent


async def test_five_hundred_stages_come_twenty_at_a_time(traced: tuple[Guest, list[Sent]]) -> None:
    maria, sent = traced
    await fill(maria.site.db, 1_500, 500)
    await fresh(sent)
    page = await maria.get(BOARD)
    # SQLite begins a unit of so many steps on the event loop, and runs it again on a thread.
    assert asked(sent) == 5 if maria.site.db.engine == "sqlite" else asked(sent) in (3, 4), sent
    assert len(columns(page)) == 20
    last = await maria.get(f"{BOARD}?first=500")
    assert columns(last)[-1] == ("stage 499", ["Deal 1499", "Deal 999", "Deal 499"])
    assert len(page.html) < 200_000
