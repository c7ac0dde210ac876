"""Decodes the bytes of a file piece by piece.

A file is UTF-8, with or without a byte order mark. One that is not, as spreadsheets in Brazil write
it, is Windows-1252 when everything before its first other character is ASCII.
"""

from gateway.domain.imports.splitting import bad
from gateway.records.errors import Refusal

UTF_8, WINDOWS = "utf-8", "windows-1252"
CHARSETS = {
    "utf-8": UTF_8, "utf8": UTF_8, "us-ascii": UTF_8, "windows-1252": WINDOWS, "cp1252": WINDOWS,
    "iso-8859-1": WINDOWS, "latin1": WINDOWS,
}  # fmt: skip
_BOM = b"\xef\xbb\xbf"
_OTHERS = (
    (b"PK\x03\x04", "This is an Excel workbook or an archive; save the sheet as CSV UTF-8."),
    (b"\xd0\xcf\x11\xe0", "This is an Excel workbook; save the sheet as CSV UTF-8."),
    (b"\xff\xfe", "This is UTF-16; save the file as CSV UTF-8."),
    (b"\xfe\xff", "This is UTF-16; save the file as CSV UTF-8."),
    (b"\x1f\x8b", "This file is compressed; send it as plain CSV."),
    (b"%PDF", "This is a PDF; send a CSV file."),
)


def with_nul(line: int) -> Refusal:
    """Return the refusal of a file with U+0000 in a line, which PostgreSQL cannot store."""
    return bad(
        line,
        "invalid_characters",
        "This line has a NUL character; remove it, or save the file as CSV UTF-8.",
    )


class Decoder:
    """Turns pieces of bytes into text. Raises validation_error with the line."""

    def __init__(self, charset: str = "") -> None:
        self.encoding = charset or UTF_8
        self._told = bool(charset)
        self._began = False
        self._ascii = True
        self._bytes = b""
        self._line = 1
        self._returned = False
        """Whether the text so far ends with a carriage return, which may begin a break."""

    def decode(self, data: bytes, *, last: bool) -> str:
        """Return further text; a character that is not whole comes with the next piece."""
        self._bytes += data
        if not self._began:
            if len(self._bytes) < 4 and not last:
                return ""
            self._begin()
        data, self._bytes = self._bytes, b""
        text = self._text(data, last)
        if "\0" in text:
            raise with_nul(self._line_of(text[: text.index("\0")]))
        self._ascii = self._ascii and text.isascii()
        self._line = self._line_of(text)
        self._returned = text.endswith("\r") if text else self._returned
        return text

    def _begin(self) -> None:
        self._began = True
        for start, message in _OTHERS:
            if self._bytes.startswith(start):
                raise bad(1, "invalid_file", message)
        if self._bytes.startswith(_BOM):
            self._bytes = self._bytes[len(_BOM) :]
            self._told = self.encoding == UTF_8

    def _text(self, data: bytes, last: bool) -> str:
        if self.encoding == UTF_8:
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                if error.reason == "unexpected end of data" and not last:
                    self._bytes = data[error.start :]
                    return data[: error.start].decode()
                if self._told or not self._ascii or not data[: error.start].isascii():
                    raise bad(
                        self._line_of(data[: error.start].decode()),
                        "invalid_encoding",
                        "This line is not UTF-8; save the file as CSV UTF-8.",
                    ) from None
            self.encoding = WINDOWS
        try:
            return data.decode("cp1252")
        except UnicodeDecodeError as error:
            raise bad(
                self._line_of(data[: error.start].decode("cp1252")),
                "invalid_encoding",
                "This line is neither UTF-8 nor Windows-1252; save the file as CSV UTF-8.",
            ) from None

    def _line_of(self, text: str) -> int:
        """Return the number of the line in which `text`, that follows what was read, ends."""
        breaks = text.count("\n") + text.count("\r") - text.count("\r\n")
        return self._line + breaks - (self._returned and text.startswith("\n"))
