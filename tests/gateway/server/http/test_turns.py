"""Tests that accounts take turns at what all share."""

import asyncio

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.console.layout import pages
from gateway.server.http import account_turns
from gateway.server.http.account_turns import BUILDING, PARSING, WRITING, Turns
from gateway.server.http.client_address import CLIENT, Client
from outbox.database.transaction import RequestBudget, patience


@pytest.mark.parametrize(("of", "each"), [(BUILDING, 3), (PARSING, 1), (WRITING, 1)])
async def test_whoever_asks_for_much_waits_behind_itself_alone(of: Turns, each: int) -> None:
    app, order, ends = web.Application(), list[str](), asyncio.Event()
    account_turns.set_up(app)

    async def work(owner: str) -> None:
        patience.set(RequestBudget(owner=owner))
        async with account_turns.turn(make_mocked_request("GET", "/", app=app), of):
            order.append(owner)
            await ends.wait()

    greedy = [asyncio.create_task(work("greedy")) for _ in range(20)]
    await asyncio.sleep(0)
    honest = asyncio.create_task(work("honest"))
    await asyncio.sleep(0)
    ends.set()
    await asyncio.gather(*greedy, honest)
    # One more has its turn first, which has waited for longer.
    assert order.index("honest") <= each + 1, order


async def test_visitors_without_a_session_take_turns_by_address() -> None:
    app, order, ends = web.Application(), list[str](), asyncio.Event()
    pages.set_up_turns(app)

    async def visit(address: str) -> None:
        request = make_mocked_request("GET", "/console/sign-in", app=app)
        request[CLIENT] = Client(address, "http", "a", outside=False)

        async def make() -> web.Response:
            order.append(address)
            await ends.wait()
            return web.Response()

        await pages.stranger_turn(request, make)

    many = [asyncio.create_task(visit("203.0.113.9")) for _ in range(6)]
    await asyncio.sleep(0)
    one = asyncio.create_task(visit("198.51.100.7"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert order == ["203.0.113.9"] * pages.STRANGERS_AT_ONCE + ["198.51.100.7"]
    ends.set()
    await asyncio.gather(*many, one)
