"""Opens a file of any kind that can be imported: a table, or cards of persons."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from gateway.domain.import_lines import Line
from gateway.domain.imports.cards import BEGIN, CardFile
from gateway.domain.imports.files import CsvFile
from gateway.domain.imports.splitting import bad
from gateway.domain.imports.variants import Variants
from gateway.records.resource import Resource
from gateway.records.values import formats
from gateway.records.values.formats import Wrong

_BOM = b"\xef\xbb\xbf"
MOST_BLANK = 4_096
"""Bytes before the first character that tells the kind of a file."""


class _File(Protocol):
    headings: list[str]
    separator: str
    lines: int

    @property
    def encoding(self) -> str: ...

    def feed(self, data: bytes) -> list[Line]: ...

    def end(self) -> list[Line]: ...


class Source:
    """Turns the bytes of a file into lines of records. Raises validation_error.

    A product list has the variants of a product one by one; a list of addresses alone needs no
    heading.
    """

    def __init__(self, resource: Resource, charset: str = "") -> None:
        self._resource = resource
        self._charset = charset
        self._bytes = b""
        self._file: _File | None = None
        self._variants: Variants | None = None
        self._began = False
        self.lines = 0
        """Lines of records."""

    def feed(self, data: bytes) -> list[Line]:
        """Return further lines."""
        if self._file is not None:
            return self._completed(self._file.feed(data))
        self._bytes += data
        start = self._bytes.removeprefix(_BOM).lstrip()
        if len(start) < len(BEGIN) and len(self._bytes) < MOST_BLANK:
            return []
        return self._completed(self._opened(start).feed(self._bytes))

    def end(self) -> list[Line]:
        """Return the last lines. Raises validation_error also for a file without any."""
        lines: list[Line] = []
        if self._file is None:
            file = self._opened(self._bytes.removeprefix(_BOM).lstrip())
            lines = self._completed(file.feed(self._bytes))
        lines += self._completed(self.file.end())
        if self._variants is not None:
            lines += self._counted(self._variants.end())
        return lines

    def _completed(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines of records that these lines of the file complete."""
        if not self._began and self.file.headings:
            self._began = True
            lines = self._begin(lines)
        return self._counted(lines if self._variants is None else self._variants.take(lines))

    def _begin(self, lines: Sequence[Line]) -> Sequence[Line]:
        headings = self.file.headings
        if self._resource.plural == "products":
            self._variants = Variants(self._resource, headings)
        elif self._resource.plural == "contacts" and len(headings) == 1 and "@" in headings[0]:
            try:
                formats.email().check(headings[0])
            except Wrong:
                return lines
            lines = [(1, [headings[0]]), *lines]
            self.file.headings = ["email"]
        return lines

    def _counted(self, lines: Iterable[Line]) -> list[Line]:
        found = list(lines)
        self.lines += len(found)
        return found

    @property
    def file(self) -> _File:
        """The file, once something of it was read."""
        assert self._file is not None, "nothing was read"
        return self._file

    @property
    def has_cards(self) -> bool:
        """Whether these are cards, once something of it was read."""
        return isinstance(self._file, CardFile)

    def _opened(self, start: bytes) -> _File:
        if start[: len(BEGIN)].upper() != BEGIN.encode():
            self._file = CsvFile(self._charset)
        elif self._resource.plural != "contacts":
            raise bad(1, "invalid_file", "This is a vCard file; import it as contacts.")
        else:
            self._file = CardFile(self._charset)
        return self._file
