"""Reads a CSV file piece by piece: its separator, its headings, its records with their lines."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from gateway.domain.import_lines import Line
from gateway.domain.imports.decoding import Decoder
from gateway.domain.imports.headings import numbered
from gateway.domain.imports.splitting import Splitter, bad
from gateway.records.values.folding import clean

MOST_BYTES = 64 * 1024 * 1024
MOST_LINES = 200_000
MOST_BLANK = 1_048_576
"""Lines without cells, as a sheet has below its last record."""
MOST_COLUMNS = 200
MOST_HEADING = 200
"""Characters of a heading, which each fault of its column repeats."""
SEPARATORS = ("\t", ";", "|", ",")
"""In the order in which equal ones are preferred: texts have commas more often than the others."""
SAMPLE = 65_536
"""Characters that are looked at, which are fewer only at the end of a file."""
SAMPLE_RECORDS = 200
"""Records that are looked at."""
_NAMED = re.compile(r'"?sep=([,;|\t])"?(?:\r\n|\n|\r(?=[^\n]))')


class CsvFile:
    """Turns the bytes of a file into its heading and its lines. Raises validation_error.

    `feed` takes any piece and returns the lines that are complete; `end` returns the last ones.
    """

    def __init__(self, charset: str = "") -> None:
        self.separator = ""
        """Empty until enough of the file is there to tell it."""
        self.headings: list[str] = []
        self.lines = 0
        """Lines with cells below the heading."""
        self._blank = 0
        self._decoder = Decoder(charset)
        self._text = ""
        self._splitter: Splitter | None = None

    @property
    def encoding(self) -> str:
        """The encoding as far as it is read."""
        return self._decoder.encoding

    def feed(self, data: bytes, *, last: bool = False) -> list[Line]:
        """Return further lines."""
        self._text += self._decoder.decode(data, last=last)
        if self._splitter is None:
            self._splitter = self._separated(last)
            if self._splitter is None:
                return []
        text, self._text = self._text, ""
        return [*self._read(self._splitter, self._splitter.split(text, last=last))]

    def end(self) -> list[Line]:
        """Return the last lines. Raises validation_error also for a file without any."""
        lines = self.feed(b"", last=True)
        if not self.headings:
            raise bad(1, "empty", "The file is empty; send a heading and a line for each record.")
        if not self.lines:
            raise bad(2, "empty", "The file has a heading only; add a line for each record.")
        return lines

    def _separated(self, last: bool) -> Splitter | None:
        """Return the splitter once enough is there to tell the separator."""
        if not last and len(self._text) < SAMPLE:
            return None
        named = _NAMED.match(self._text)
        if named is not None:
            # Excel's way to say it.
            self._text = self._text[named.end() :]
            self.separator = named[1]
            return Splitter(named[1], line=2)
        self.separator = separator_of(self._text, last=last)
        return Splitter(self.separator)

    def _read(self, splitter: Splitter, records: Sequence[tuple[int, str]]) -> Iterator[Line]:
        # Each record is one line of this reader, so an error is that of the record.
        reader = csv.reader(
            (text for _, text in records), delimiter=splitter.separator, strict=True
        )
        for line, _ in records:
            try:
                cells = next(reader)
            except csv.Error as error:
                if "field limit" in str(error):
                    raise bad(
                        line,
                        "too_long",
                        f"A cell has more than {csv.field_size_limit():,} characters; shorten it.",
                    ) from None
                raise bad(line, "invalid_quotes", _QUOTES) from None
            if not any(map(clean, cells)):
                self._blank += 1
                if self._blank > MOST_BLANK:
                    raise bad(
                        line,
                        "too_many",
                        f"The file has more than {MOST_BLANK:,} empty lines; delete them.",
                    )
                continue
            if len(cells) > MOST_COLUMNS:
                raise bad(
                    line,
                    "too_many",
                    f"This line has {len(cells)} columns; send at most {MOST_COLUMNS}.",
                )
            if not self.headings:
                self._head(line, cells)
                continue
            self.lines += 1
            if self.lines > MOST_LINES:
                raise bad(line, "too_many", f"Send at most {MOST_LINES:,} lines; split the file.")
            yield line, cells

    def _head(self, line: int, cells: Sequence[str]) -> None:
        self.headings = numbered([clean(cell) for cell in cells])
        if max(map(len, self.headings)) > MOST_HEADING:
            raise bad(
                line,
                "too_long",
                f"A heading has more than {MOST_HEADING} characters; name the columns in the first "
                "line.",
            )


_QUOTES = (
    'A quote stands in a quoted cell; write it twice (""), and nothing between the closing quote '
    "and the separator."
)


def separator_of(text: str, *, last: bool) -> str:
    """Return the separator of a file that begins with `text`; `last` says that this is all of it.

    It separates cells of the heading, if any does, and gives the same number of cells in the most
    records; then it gives the most cells.
    """
    # A break after the end completes the last record, and after a break it is a blank line.
    sample = text[:SAMPLE] + ("\n" if last and len(text) <= SAMPLE else "")
    return max(SEPARATORS, key=lambda sign: (_fit(sample, sign), -SEPARATORS.index(sign)))


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
    for _, record in Splitter(separator).split(sample, last=False)[:SAMPLE_RECORDS]:
        try:
            cells = next(csv.reader([record], delimiter=separator, strict=True), [])
        except csv.Error:
            counts.append(0)
            continue
        if any(map(clean, cells)):
            counts.append(len(cells))
    return counts
