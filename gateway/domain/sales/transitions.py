"""Checks transitions between the states of a record against a table."""

from collections.abc import Mapping, Sequence

from gateway.records.errors import Refusal

Table = Mapping[str, Sequence[str]]
"""State → the allowed next states; none for a final state."""


def move(noun: str, table: Table, current: str, wanted: str) -> None:
    """Raise invalid_transition, with the `allowed` states, unless `wanted` may follow `current`."""
    allowed = list(table[current])
    if wanted in allowed:
        return
    onward = f"it can become {' or '.join(allowed)}" if allowed else f"{current} is final"
    raise Refusal(
        "invalid_transition",
        f"This {noun} is {current} and cannot become {wanted}; {onward}.",
        facts={"allowed": allowed},
    )
