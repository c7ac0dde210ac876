"""Positions in a list, by the values of the keys of its order, and the condition of what follows.

No key is ever null: an order with empty values has a key that puts them last.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Key = tuple[str, bool]
"""A key of an order in SQL, and whether it is descending. The id follows as the last key does."""


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a list: the values of the keys that order it, and the id."""

    at: int | str
    record_id: str
    further: tuple[int | str, ...] = ()
    """The values of the second key and those after it."""

    @property
    def values(self) -> tuple[int | str, ...]:
        return (self.at, *self.further, self.record_id)


def order_by(keys: Sequence[Key], *, backward: bool = False) -> str:
    """Return an order in SQL, made total by the id; `backward` turns it round."""
    every = (*keys, ("id", keys[-1][1]))
    return ", ".join(f"{sql} desc" if down != backward else sql for sql, down in every)


def beyond(keys: Sequence[Key], place: Place, args: list[Any], *, backward: bool = False) -> str:
    """Return the condition of the records after a place, or before it; append its values."""
    every = (*keys, ("id", keys[-1][1]))
    first = len(args) + 1
    args += place.values
    names = [sql for sql, _ in every]
    values = [f"${number}" for number in range(first, len(args) + 1)]
    signs = ["<" if down != backward else ">" for _, down in every]
    # The first key alone bounds what is read of its index.
    bound = f"{names[0]} {signs[0]}= {values[0]} and "
    if len(set(signs)) == 1:
        # SQLite takes the bound of a row from an index of columns, but not of expressions.
        plain = names[0].isidentifier()
        return f"{'' if plain else bound}({', '.join(names)}) {signs[0]} ({', '.join(values)})"
    condition = ""
    for name, sign, value in reversed([*zip(names, signs, values, strict=True)]):
        later = f"{name} {sign} {value}"
        condition = f"({later} or ({name} = {value} and {condition}))" if condition else later
    return bound + condition
