"""Reads a vCard file (2.1, 3.0, 4.0) piece by piece: each card is a line of a contact.

Of a card's photos, logos, sounds and keys nothing is kept, not even in memory.
"""

import re
from collections.abc import Iterator

from gateway.domain.import_lines import Line
from gateway.domain.imports.decoding import Decoder
from gateway.domain.imports.files import MOST_LINES
from gateway.domain.imports.splitting import MOST_RECORD, bad
from gateway.domain.imports.vcards import HEADINGS, Property, cells_of

MOST_SKIPPED = 4_194_304
"""Characters of a photo or another property that is not kept."""
MOST_DEPTH = 5
BEGIN = "BEGIN:VCARD"
_SKIPPED = re.compile(r"(?:[\w-]+\.)?(?:PHOTO|LOGO|SOUND|KEY|AGENT)[;:]", re.I | re.ASCII)
_BREAK = re.compile(r"\r\n|\n|\r(?=[^\n])")
_QP = re.compile(r"[^:]*;(?:ENCODING=)?QUOTED-PRINTABLE[;:]", re.I)


class CardFile:
    """Turns the bytes of a file into its cards. Raises validation_error.

    `feed` takes any piece and returns the cards that are complete; `end` returns the last ones.
    """

    separator = ""

    def __init__(self, charset: str = "") -> None:
        self.headings = list(HEADINGS)
        self.lines = 0
        """Cards of persons."""
        self._decoder = Decoder(charset)
        self._text = ""
        self._looked = 0
        """How far the text is looked at."""
        self._line = 1
        self._began = 0
        """The line in which the card begins, outside of cards 0."""
        self._depth = 0
        self._size = 0
        self._properties: list[Property] = []
        self._skips = False
        self._skipped = 0

    @property
    def encoding(self) -> str:
        """The encoding as far as it is read."""
        return self._decoder.encoding

    def feed(self, data: bytes, *, last: bool = False) -> list[Line]:
        """Return further cards."""
        self._text += self._decoder.decode(data, last=last)
        return [*self._read(last)]

    def end(self) -> list[Line]:
        """Return the last cards. Raises validation_error also for a file without any."""
        cards = self.feed(b"", last=True)
        if self._began:
            raise bad(self._began, "not_closed", "The card that begins here has no END:VCARD.")
        if not self.lines:
            raise bad(1, "empty", "The file has no card of a person.")
        return cards

    def _read(self, last: bool) -> Iterator[Line]:
        place = 0
        while line_break := _BREAK.search(self._text, max(place, self._looked)):
            yield from self._take(self._text[place : line_break.start()])
            place, self._looked = line_break.end(), 0
            self._line += 1
        self._text = self._text[place:]
        # A return at the end may begin a break.
        self._looked = max(0, len(self._text) - 1)
        if last and self._text:
            yield from self._take(self._text.rstrip("\r"))
            self._text = ""
        self._must_fit(len(self._text), self._skips or bool(_SKIPPED.match(self._text)))

    def _take(self, line: str) -> Iterator[Line]:
        """Take a line of the file: the rest of a property, or a property, BEGIN or END."""
        self._must_fit(len(line), self._skips or bool(_SKIPPED.match(line)))
        if not self._began:
            if line.strip().upper() == BEGIN:
                self._began, self._size, self._properties = self._line, 0, []
            elif line.strip():
                raise bad(self._line, "invalid_file", f"A card begins with {BEGIN}.")
            return
        if line[:1] in (" ", "\t") or self._goes_on():
            if self._skips:
                self._skipped += len(line)
            elif self._properties:
                self._size += len(line)
                self._properties[-1].add(line)
            return
        word = line.strip().upper()
        if self._depth and word.startswith("END:"):
            self._depth -= 1
        elif word.startswith("BEGIN:"):
            # A card in a card, such as that of an agent.
            self._depth += 1
            if self._depth > MOST_DEPTH:
                raise bad(self._line, "invalid_file", "Cards stand too deep in cards.")
        elif word == "END:VCARD":
            yield from self._end()
        elif not self._depth and word:
            self._skips, self._skipped = bool(_SKIPPED.match(line)), len(line)
            if not self._skips:
                self._size += len(line)
                quoted = _QP.match(line) is not None
                self._properties.append(Property(self._line, line, quoted=quoted))

    def _goes_on(self) -> bool:
        """Return whether the next line belongs to a property that its encoding breaks."""
        return not self._skips and bool(self._properties) and self._properties[-1].is_open

    def _end(self) -> Iterator[Line]:
        began, self._began, self._skips = self._began, 0, False
        cells = cells_of(self._properties)
        self._properties = []
        if cells is None:
            return
        self.lines += 1
        if self.lines > MOST_LINES:
            raise bad(began, "too_many", f"Send at most {MOST_LINES:,} cards; split the file.")
        yield began, cells

    def _must_fit(self, more: int, skips: bool) -> None:
        if skips and self._skipped * self._skips + more > MOST_SKIPPED:
            raise bad(
                self._line,
                "too_long",
                f"A photo has at most {MOST_SKIPPED:,} characters; remove it from the card.",
            )
        if not skips and self._size * bool(self._began) + more > MOST_RECORD:
            raise bad(
                self._began or self._line,
                "too_long",
                f"A card has at most {MOST_RECORD:,} characters beside its photo; shorten the card "
                "that begins here.",
            )
