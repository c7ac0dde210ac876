"""Which state of a record may follow which: a table as data, and the refusal of all else."""

from collections.abc import Mapping, Sequence

from gateway.records.errors import Refusal

Table = Mapping[str, Sequence[str]]
"""State → the states that may follow it; none for a final state."""


def move(noun: str, table: Table, current: str, wanted: str) -> None:
    """Raise invalid_transition, with what is `allowed`, unless `wanted` may follow `current`."""
    allowed = list(table[current])
    if wanted in allowed:
        return
    onward = f"it can become {' or '.join(allowed)}" if allowed else "that is final"
    raise Refusal(
        "invalid_transition",
        f"This {noun} is {current} and cannot become {wanted}; {onward}.",
        facts={"allowed": allowed},
    )
