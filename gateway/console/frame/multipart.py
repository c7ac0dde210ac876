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


@dataclass(frozen=True, slots=True)
class Upload:
    """The fields before the file, and the bytes of the file."""

    fields: Mapping[str, str]
    pieces: AsyncGenerator[bytes, None]


def is_one(request: web.Request) -> bool:
    """Return whether the body is a form with a file."""
    return request.headers.get("Content-Type", "").lower().startswith("multipart/form-data")


async def read(request: web.Request, most: int) -> Upload:
    """Read the fields of a form, up to the field `file`; its bytes are read as they are asked for.

    Raise payload_too_large or validation_error.
    """
    found = _BOUNDARY.search(request.headers.get("Content-Type", ""))
    if found is None:
        raise _malformed()
    source = _Source(bodies.pieces(request, most + HEAD_BYTES * MOST_FIELDS))
    mark = b"\r\n--" + found[1].encode()
    # The first mark may stand at the very beginning.
    source.waiting = b"\r\n"
    fields: dict[str, str] = {}
    await source.upto(mark, HEAD_BYTES)
    for _ in range(MOST_FIELDS):
        head = await source.upto(b"\r\n\r\n", HEAD_BYTES)
        name = _NAME.search(head)
        if head.startswith(b"--") or name is None:
            break
        if name[1] == b"file":
            return Upload(fields, source.until(mark))
        value = await source.upto(mark, FIELD_BYTES)
        fields[name[1].decode("utf-8", "replace")] = value.decode("utf-8", "replace")
    raise _malformed()


class _Source:
    """Bytes that are read up to marks."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self.waiting = b""
        self._pieces = pieces

    async def upto(self, mark: bytes, most: int) -> bytes:
        """Return what is before the mark, and pass it. Raise validation_error past `most`."""
        while (place := self.waiting.find(mark)) < 0:
            if len(self.waiting) > most:
                raise _malformed()
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
        if place:
            yield self.waiting[:place]

    async def _more(self) -> None:
        piece = await anext(self._pieces, b"")
        if not piece:
            raise _malformed()
        self.waiting += piece


def _malformed() -> Refusal:
    return Refusal("validation_error", "error.upload_malformed")
