"""Opens a file of any kind that can be imported: a table, or cards of persons."""

from typing import Protocol

from gateway.domain.import_lines import Line
from gateway.domain.imports.cards import BEGIN, CardFile
from gateway.domain.imports.files import CsvFile
from gateway.domain.imports.splitting import bad
from gateway.records.resource import Resource

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
    """Turns the bytes of a file into lines of records. Raises validation_error."""

    def __init__(self, resource: Resource, charset: str = "") -> None:
        self._resource = resource
        self._charset = charset
        self._bytes = b""
        self._file: _File | None = None

    def feed(self, data: bytes) -> list[Line]:
        """Return further lines."""
        if self._file is not None:
            return self._file.feed(data)
        self._bytes += data
        start = self._bytes.removeprefix(_BOM).lstrip()
        if len(start) < len(BEGIN) and len(self._bytes) < MOST_BLANK:
            return []
        return self._opened(start).feed(self._bytes)

    def end(self) -> list[Line]:
        """Return the last lines. Raises validation_error also for a file without any."""
        if self._file is not None:
            return self._file.end()
        file = self._opened(self._bytes.removeprefix(_BOM).lstrip())
        return [*file.feed(self._bytes), *file.end()]

    @property
    def file(self) -> _File:
        """The file, once something of it was read."""
        assert self._file is not None, "nothing was read"
        return self._file

    def _opened(self, start: bytes) -> _File:
        if start[: len(BEGIN)].upper() != BEGIN.encode():
            self._file = CsvFile(self._charset)
        elif self._resource.plural != "contacts":
            raise bad(1, "invalid_file", "This is a vCard file; import it as contacts.")
        else:
            self._file = CardFile(self._charset)
        return self._file
