"""The directory that cells share."""

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import asyncpg
import pytest

from gateway.domain.cells.directory import CellDirectory
from gateway.records.errors import Refusal
from gateway.server.cell_parts import directory_of
from outbox.clock import SystemClock
from outbox.database.claims import Claim
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from tests.gateway.server.test_cells import configured
from tests.support.databases import PostgresServer

MARIA = Claim("email", "maria@example.com", "a" * 24, "email")
SHOP = Claim("hostname", "shop.example", "a" * 24, "hostname")
OLDER = "update names set changed_at = changed_at - interval '61 seconds'"


def seen_by(url: str, cell: str) -> CellDirectory:
    directory = directory_of(configured(cell, url), SystemClock(), Ids())
    assert directory is not None
    return directory


@pytest.fixture
async def url(postgres_server: PostgresServer) -> AsyncIterator[str]:
    made = await postgres_server.empty()
    yield made
    await postgres_server.drop(made)


@pytest.fixture
async def both(url: str) -> AsyncIterator[tuple[CellDirectory, CellDirectory]]:
    pair = seen_by(url, "one"), seen_by(url, "two")
    yield pair
    for one in pair:
        await one.close()


async def older(url: str) -> None:
    """Let a minute pass for all reservations."""
    connection = await asyncpg.connect(url)
    await connection.execute(OLDER)
    await connection.close()


@pytest.mark.slow
async def test_one_cell_alone_reserves_a_name(both: tuple[CellDirectory, CellDirectory]) -> None:
    one, two = both
    await one.reserve([MARIA, SHOP])
    await one.reserve([MARIA])
    with pytest.raises(Refusal) as refused:
        await two.reserve([SHOP, Claim("email", "lia@example.com", "b" * 24, "email")])
    assert refused.value.code == "conflict"
    assert [fault.field for fault in refused.value.faults] == ["hostname"]
    assert await two.find("email", "maria@example.com") == "one"
    assert await one.find("email", "maria@example.com") is None
    assert await two.find("email", "nobody@example.com") is None


async def test_a_reservation_that_nobody_stored_ends_after_a_minute(
    both: tuple[CellDirectory, CellDirectory], url: str
) -> None:
    one, two = both
    await one.reserve([MARIA, SHOP])
    assert not await one.unsettled()
    # Not even by mistake, as a unit may be about to commit.
    await one.settle([], [("email", MARIA.value)])
    with pytest.raises(Refusal):
        await two.reserve([MARIA])
    await older(url)
    assert not await two.unsettled()
    names = await one.unsettled()
    assert sorted(names) == [("email", MARIA.value), ("hostname", SHOP.value)]
    await one.settle([("hostname", SHOP.value)], [("email", MARIA.value)])
    await two.reserve([MARIA])
    with pytest.raises(Refusal):
        await two.reserve([SHOP])
    assert not await one.unsettled()


async def test_without_the_directory_only_new_names_fail(url: str) -> None:
    address = urlsplit(url)
    one = seen_by(address._replace(path="/missing").geturl(), "one")
    try:
        with pytest.raises(DatabaseUnavailable):
            await one.reserve([MARIA])
        await one.reserve([Claim("hostname", SHOP.value, SHOP.owner_id, holds=False)])
        assert await one.find("email", MARIA.value) is None
    finally:
        await one.close()
