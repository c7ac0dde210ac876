"""Batches of rows: about a megabyte each, and never more memory than a few rows need."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pytest

from outbox.database.sizes import BATCH_BYTES, MOST_AT_ONCE, MOST_ROWS, Batches, Rows

SMALL, LARGE = ("x" * 10,), ("x" * BATCH_BYTES,)


@pytest.mark.parametrize(
    "rows",
    [[], [SMALL], [SMALL] * 10_000, [LARGE] * 5, [SMALL] * 5_000 + [LARGE] * 200 + [SMALL] * 7],
)
async def test_all_rows_come_in_their_order_and_few_at_once(rows: Sequence[tuple[str]]) -> None:
    left = iter(rows)
    asked: list[int] = []

    async def fetch(count: int) -> Rows:
        asked.append(count)
        return list(islice(left, count))

    batches = Batches(fetch)
    found = []
    while batch := await batches.next():
        found.append(batch)
    assert [row for batch in found for row in batch] == list(rows)
    assert max(asked) <= MOST_AT_ONCE
    assert all(0 < len(batch) < MOST_ROWS + MOST_AT_ONCE for batch in found)
    # Large rows may follow small ones once; then they are read one by one.
    assert sum(len(batch) > 1 and LARGE in batch for batch in found) <= 2


async def test_small_rows_share_a_batch() -> None:
    left = iter([SMALL] * MOST_ROWS * 2)

    async def fetch(count: int) -> Rows:
        return list(islice(left, count))

    batches = Batches(fetch)
    assert [len(await batches.next()) for _ in range(3)] == [MOST_ROWS, MOST_ROWS, 0]
