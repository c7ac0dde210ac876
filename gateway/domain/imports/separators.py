"""Finds the character that separates the cells of a file, from its first records."""

import csv
from collections import Counter
from collections.abc import Sequence

from gateway.domain.imports.splitting import Splitter
from gateway.records.values.folding import clean

SEPARATORS = ("\t", ";", "|", ",")
"""In the order in which equal ones are preferred: texts have commas more often than the others."""
SAMPLE = 65_536
"""Characters that are looked at, which are fewer only at the end of a file."""
MOST = 200
"""Records that are looked at."""


def separator_of(text: str, *, last: bool) -> str:
    """Return the separator of a file that begins with `text`; `last` says that this is all of it.

    It separates cells of the heading, if any does, and gives the same number of cells in the most
    records; then it gives the most cells.
    """
    # A break after the end completes the last record, and after a break it is a blank line.
    sample = text[:SAMPLE] + ("\n" if last and len(text) <= SAMPLE else "")
    return max(SEPARATORS, key=lambda one: (_fit(sample, one), -SEPARATORS.index(one)))


def _fit(sample: str, separator: str) -> tuple[bool, int, int]:
    counts = _counts(sample, separator)
    # A record of one cell fits any separator: sheets leave out empty cells at the end of a line.
    usual = max(Counter(count for count in counts if count > 1).values(), default=0)
    if counts and counts[0] > 1:
        return True, usual, counts[0]
    # A list of one column has few; where most lines have more, the heading lacks columns.
    if usual > len(counts) // 2:
        return True, usual, 0
    return False, counts.count(1), 0


def _counts(sample: str, separator: str) -> Sequence[int]:
    """Return the number of cells of each record that is not blank; 0 where quotes do not fit."""
    counts: list[int] = []
    for _, record in Splitter(separator).split(sample, last=False)[:MOST]:
        try:
            cells = next(csv.reader([record], delimiter=separator, strict=True), [])
        except csv.Error:
            counts.append(0)
            continue
        if any(map(clean, cells)):
            counts.append(len(cells))
    return counts
