"""How many rows a batch of about a megabyte has, when rows have any size."""

from collections.abc import Sequence
from typing import Any

FIRST_BATCH = 64
MOST_ROWS = 4_096
BATCH_BYTES = 2**20


def rows_for(batch: Sequence[Sequence[Any]]) -> int:
    """Return how many rows like these have BATCH_BYTES together."""
    size = sum(
        len(value) if isinstance(value, str | bytes) else 8 for row in batch for value in row
    )
    return max(1, min(MOST_ROWS, BATCH_BYTES * len(batch) // max(size, 1)))
