"""Splits the text of a CSV file into records: a break in a quoted cell ends none."""

import re

from gateway.records.errors import Fault, Refusal
from gateway.records.record import refusal

MOST_RECORD = 262_144
"""Characters of a record, which may have several lines."""
_BREAK = re.compile(r"\r\n|\n|\r")
_TOO_LONG = (
    f"The record that begins here has more than {MOST_RECORD:,} characters; shorten it, or look "
    "for a quote that is not closed."
)
_OPEN = "A quote opens in the record that begins here and is never closed; close or double it."


def bad(line: int, code: str, message: str) -> Refusal:
    """Return the refusal of a file because of one of its lines."""
    return refusal([Fault(f"line {line}", code, message)])


def breaks(text: str) -> int:
    """Return the number of line breaks of a text."""
    return sum(1 for _ in _BREAK.finditer(text))


class Splitter:
    """Splits text that comes in pieces. It looks at each text once."""

    def __init__(self, separator: str, line: int = 1) -> None:
        self.separator = separator
        self.line = line
        """The line in which the next record begins."""
        self._stop = re.compile(f"[{re.escape(separator)}\r\n]")
        self._text = ""
        self._place = 0
        """How far the record that begins the text is looked at."""
        self._state = "start"

    @property
    def waiting(self) -> str:
        """The text after the last complete record."""
        return self._text

    def split(self, text: str, *, last: bool) -> list[tuple[int, str]]:
        """Return the records that are complete, each with the number of its first line."""
        self._text += text
        records: list[tuple[int, str]] = []
        begin = 0
        while True:
            ending = self._end(begin, last)
            if ending is None:
                break
            end, following = ending
            record = self._text[begin:end]
            records.append((self.line, record))
            self.line += 1 if '"' not in record else 1 + breaks(record)
            begin, self._place, self._state = following, following, "start"
        self._text = self._text[begin:]
        self._place -= begin
        if len(self._text) > MOST_RECORD:
            raise bad(self.line, "too_long", _TOO_LONG)
        if last and self._text:
            if self._state == "quoted":
                raise bad(self.line, "invalid_quotes", _OPEN)
            records.append((self.line, self._text))
            self._text = ""
        return records

    def _end(self, begin: int, last: bool) -> tuple[int, int] | None:
        """Return where the record at `begin` ends and the next begins; None when it goes on."""
        text, size = self._text, len(self._text)
        if self._place == begin and self._state == "start":
            line_break = self._break(begin, last)
            if line_break is not None and text.find('"', begin, line_break[0]) < 0:
                return line_break
        while self._place < size:
            if self._state == "start":
                self._state = "plain"
                if text[self._place] == '"':
                    self._state = "quoted"
                    self._place += 1
            elif self._state == "quoted":
                quote = text.find('"', self._place)
                self._place = size if quote < 0 else quote
                if quote < 0 or (quote + 1 == size and not last):
                    return None
                if text.startswith('""', quote):
                    self._place = quote + 2
                else:
                    self._place, self._state = quote + 1, "plain"
            else:
                stop = self._stop.search(text, self._place)
                if stop is None:
                    self._place = size
                elif stop[0] == self.separator:
                    self._place, self._state = stop.end(), "start"
                else:
                    self._place = stop.start()
                    return self._break(self._place, last)
        return None

    def _break(self, begin: int, last: bool) -> tuple[int, int] | None:
        """Return the next break; one that may go on in the next piece is none yet."""
        found = _BREAK.search(self._text, begin)
        if found is None or (found[0] == "\r" and found.end() == len(self._text) and not last):
            return None
        return found.span()
