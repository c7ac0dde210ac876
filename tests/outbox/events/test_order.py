"""The events of one transaction stand in the order in which they were written."""

import pytest

from outbox.database.transaction import Database
from tests.support.drain import make_many, rows


@pytest.mark.parametrize("count", [3, 7, 15, 16, 17, 130])
async def test_events_of_one_unit_keep_their_order(db: Database, count: int) -> None:
    written = await db.write(make_many, count)
    assert [row["id"] for row in await db.read(rows, "select id from events order by pos")] == (
        written
    )
