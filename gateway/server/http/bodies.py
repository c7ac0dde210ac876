"""Reads request bodies with a size limit and decompresses them.

A client cannot choose a character set: text is UTF-8. Only a known caller may compress a body, with
gzip or deflate; the limit applies to the result while it is decompressed.
"""

import zlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from functools import lru_cache

from aiohttp import web

from gateway.records.errors import Refusal, rate_limited
from gateway.server.app_keys import CALLER
from gateway.server.http.inbound import Connection

ANONYMOUS_BYTES = 65_536
"""The maximum size of a form, and of a body from an unknown caller."""
GZIP, ZLIB, RAW = 31, 15, -15
"""Window sizes of zlib, which select the format. `deflate` occurs with and without a header."""
CODINGS = "gzip, deflate"
UPLOADS = 8
"""Bodies of one account that are read in pieces at the same time."""


async def read(request: web.Request) -> bytes:
    """Return the decompressed body of a REST request.

    Raise payload_too_large, unsupported_media_type or invalid_json.
    """
    if CALLER not in request:
        return await plain(request)
    most = request.client_max_size
    coding = _coding(request)
    if coding not in ("", "gzip", "deflate"):
        raise _unknown_coding("Send the body uncompressed or with gzip or deflate.", CODINGS)
    body = await _read(request, most)
    return _unpacked(body, coding, most) if coding else body


async def plain(request: web.Request) -> bytes:
    """Return a small uncompressed body: a form, or a body from an unknown caller.

    Raise payload_too_large or unsupported_media_type.
    """
    if _coding(request):
        raise _unknown_coding("Send the body uncompressed.")
    return await _read(request, min(ANONYMOUS_BYTES, request.client_max_size))


async def whole(request: web.Request) -> bytes:
    """Return an uncompressed body of up to the configured size, from any caller.

    Raise payload_too_large or unsupported_media_type.
    """
    if _coding(request):
        raise _unknown_coding("Send the body uncompressed.")
    return await _read(request, request.client_max_size)


def pieces(request: web.Request, most: int) -> AsyncIterator[bytes]:
    """Yield an uncompressed body piece by piece; a consumed piece no longer counts as waiting.

    Raise payload_too_large, unsupported_media_type, or rate_limited beyond UPLOADS.
    """
    upload = request[UPLOAD] = _pieces(request, most)
    return upload


async def close(request: web.Request) -> None:
    """End the upload of a refused request, of which nobody reads the rest."""
    upload = request.get(UPLOAD)
    if upload is not None:
        await upload.aclose()


async def _pieces(request: web.Request, most: int) -> AsyncGenerator[bytes, None]:
    if _coding(request):
        raise _unknown_coding("Send the file uncompressed, without Content-Encoding.", "identity")
    length = request.content_length
    if length is not None and length > most:
        raise _too_large(most)
    connection, open_uploads = request.protocol, request.app[UPLOADING]
    holder = connection.holder if isinstance(connection, Connection) else ""
    if open_uploads[holder] >= UPLOADS:
        raise rate_limited(
            f"{UPLOADS} files are being sent already; wait until one has arrived.", 5
        )
    open_uploads[holder] += 1
    try:
        size = 0
        while piece := await request.content.readany():
            size += len(piece)
            if size > most:
                raise _too_large(most)
            if isinstance(connection, Connection):
                connection.consumed(len(piece))
            yield piece
    finally:
        open_uploads[holder] -= 1
        if not open_uploads[holder]:
            del open_uploads[holder]


@lru_cache(maxsize=256)
def media_type(header: str) -> tuple[str, str]:
    """Return the media type and the charset of a Content-Type; the default charset is utf-8."""
    name, *parameters = (part.strip().lower() for part in header.split(";"))
    charset = "utf-8"
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        # The extended form (charset*=…) also names a charset.
        if key.rstrip(" *") == "charset":
            charset = value.strip().strip('"')
    return name, charset


def _coding(request: web.Request) -> str:
    lines = request.headers.getall("Content-Encoding", None)
    if lines is None:
        return ""
    coding = ", ".join(lines).strip().lower()
    return "" if coding == "identity" else coding


async def _read(request: web.Request, most: int) -> bytes:
    length = request.content_length
    if length is not None and length > most:
        raise _too_large(most)
    content = request.content
    if content.is_eof():
        # Most bodies arrive with their head.
        whole = content.read_nowait()
        if len(whole) > most:
            raise _too_large(most)
        return whole
    body = bytearray()
    while chunk := await content.readany():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _unpacked(body: bytes, coding: str, most: int) -> bytes:
    window = GZIP
    if coding == "deflate":
        # RFC 9110 8.4.1.2 requires the zlib header, but some clients omit it.
        window = ZLIB if body[:1] and body[0] & 0x0F == 8 else RAW
    machine = zlib.decompressobj(window)
    try:
        content = machine.decompress(body, most + 1)
    except zlib.error:
        content, machine = b"", zlib.decompressobj()
    if len(content) > most:
        raise _too_large(most)
    if not machine.eof or machine.unused_data:
        raise Refusal("invalid_json", f"The body is not valid {coding}.")
    return content


def _too_large(most: int) -> Refusal:
    return Refusal("payload_too_large", f"The body must not exceed {most} bytes.")


def _unknown_coding(text: str, known: str = "") -> Refusal:
    facts = {"accept_encoding": known} if known else {}
    return Refusal("unsupported_media_type", text, facts=facts)


UPLOAD = web.RequestKey("UPLOAD", AsyncGenerator[bytes, None])
UPLOADING: web.AppKey[Counter[str]] = web.AppKey("UPLOADING")
"""The open uploads of each account or address."""
