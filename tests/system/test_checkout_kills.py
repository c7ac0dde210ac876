"""A node is killed in the middle of a checkout that two nodes take."""

import pytest

from tests.support.databases import PostgresServer
from tests.system.checkout_kills import run_kills

SEED = 80261

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]


async def test_a_killed_node_orders_a_cart_once(postgres_server: PostgresServer) -> None:
    url = await postgres_server.fresh()
    assert await run_kills(url, 4, SEED) == []
    await postgres_server.drop(url)
