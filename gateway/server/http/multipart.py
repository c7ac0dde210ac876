"""Reads a form with a file (multipart/form-data) in pieces: the file is never whole in memory."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass

from aiohttp import web

from gateway.records.errors import Refusal
from gateway.server.http import bodies

HEAD_BYTES = 4_096
"""Bytes of the headers of a part."""
FIELD_BYTES = 4_096
MOST_FIELDS = 10
_BOUNDARY = re.compile(r'boundary="?([0-9A-Za-z\'()+_,./:=? -]{1,70}?)"?\s*(?:;|$)')
_NAME = re.compile(rb'(?:^|[;\s])name="([^"\r\n]{1,64})"')
_TYPE = re.compile(rb"^content-type:([^\r\n]*)", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Upload:
    """The fields of a form, the bytes of its file, and the Content-Type of the file.

    The fields after the file are there once its pieces are read.
    """

    fields: Mapping[str, str]
    pieces: AsyncGenerator[bytes, None]
    media_type: str | None


def is_one(request: web.Request) -> bool:
    """Return whether the body is a form with a file."""
    return request.headers.get("Content-Type", "").lower().startswith("multipart/form-data")


async def read(
    request: web.Request, most: int, malformed: str, field_bytes: int = FIELD_BYTES
) -> Upload:
    """Read the fields of a form, up to the field `file`; its bytes are read as they are asked for.

    Raise payload_too_large, or validation_error with the text `malformed`.
    """
    boundary = _BOUNDARY.search(request.headers.get("Content-Type", ""))
    if boundary is None:
        raise Refusal("validation_error", malformed)
    room = HEAD_BYTES * MOST_FIELDS + field_bytes
    source = _Source(bodies.pieces(request, most + room), malformed)
    mark = b"\r\n--" + boundary[1].encode()
    # The first mark may stand at the very beginning.
    source.waiting = b"\r\n"
    fields: dict[str, str] = {}
    await source.upto(mark, HEAD_BYTES)
    head = await _fields(source, mark, fields, field_bytes)
    if head is None:
        raise source.malformed()

    async def pieces() -> AsyncGenerator[bytes, None]:
        async for piece in source.until(mark):
            yield piece
        await source.upto(mark, 0)
        if await _fields(source, mark, fields, field_bytes) is not None:
            # A second file.
            raise source.malformed()

    kind = _TYPE.search(head)
    return Upload(fields, pieces(), None if kind is None else kind[1].decode("latin-1").strip())


async def _fields(
    source: "_Source", mark: bytes, fields: dict[str, str], field_bytes: int
) -> bytes | None:
    """Read fields up to a file, and return the headers of its part; None at the end."""
    while len(fields) < MOST_FIELDS:
        if await source.ends():
            return None
        head = await source.upto(b"\r\n\r\n", HEAD_BYTES)
        name = _NAME.search(head)
        if name is None:
            break
        if name[1] == b"file":
            return head
        text = name[1].decode("utf-8", "replace")
        if text in fields:
            # Twice the same field never fills the form.
            break
        fields[text] = (await source.upto(mark, field_bytes)).decode("utf-8", "replace")
    raise source.malformed()


class _Source:
    """Bytes that are read up to marks."""

    def __init__(self, pieces: AsyncIterator[bytes], malformed: str) -> None:
        self.waiting = b""
        self._pieces = pieces
        self._malformed = malformed

    async def upto(self, mark: bytes, most: int) -> bytes:
        """Return what is before the mark, and pass it. Raise validation_error past `most`."""
        while (place := self.waiting.find(mark)) < 0:
            if len(self.waiting) > most:
                raise self.malformed()
            await self._more()
        before, self.waiting = self.waiting[:place], self.waiting[place + len(mark) :]
        return before

    async def until(self, mark: bytes) -> AsyncGenerator[bytes, None]:
        """Yield what is before the mark."""
        while (place := self.waiting.find(mark)) < 0:
            # The end may be the beginning of the mark.
            ready = len(self.waiting) - len(mark)
            if ready > 0:
                yield self.waiting[:ready]
                self.waiting = self.waiting[ready:]
            await self._more()
        before, self.waiting = self.waiting[:place], self.waiting[place:]
        if before:
            yield before

    async def ends(self) -> bool:
        """Return whether the mark that was passed is the last one."""
        while len(self.waiting) < 2:
            await self._more()
        return self.waiting.startswith(b"--")

    async def _more(self) -> None:
        piece = await anext(self._pieces, b"")
        if not piece:
            raise self.malformed()
        self.waiting += piece

    def malformed(self) -> Refusal:
        """Return the refusal of a body that is no form with a file, or is not whole."""
        return Refusal("validation_error", self._malformed)
