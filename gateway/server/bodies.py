"""The body of a request: how much of it is read, and in which codings it may come.

No client chooses a decoder: text is UTF-8, and only a known caller may compress a body, by two
codings whose result is bounded while it is made.
"""

import zlib
from functools import lru_cache

from aiohttp import web

from gateway.records.errors import Refusal
from gateway.server.keys import CALLER, CONFIG

ANONYMOUS_BYTES = 65_536
"""The most that is read of a body before its sender is known, and of a form."""
GZIP, ZLIB, RAW = 31, 15, -15
"""Windows of zlib: what stands around the data. `deflate` is sent with and without it."""
CODINGS = "gzip, deflate"


async def read(request: web.Request) -> bytes:
    """The body of a REST request, unpacked.

    Raises payload_too_large, unsupported_media_type, invalid_json.
    """
    if CALLER not in request:
        return await plain(request)
    most = request.app[CONFIG].limits.body_bytes
    coding = _coding(request)
    if coding not in ("", "gzip", "deflate"):
        raise _unknown_coding("Send the body as it is, or compressed by gzip or deflate.", CODINGS)
    body = await _read(request, most)
    return _unpacked(body, coding, most) if coding else body


async def plain(request: web.Request) -> bytes:
    """A small body that is not compressed: a form, or what comes from somebody not yet known.

    Raises payload_too_large, unsupported_media_type.
    """
    if _coding(request):
        raise _unknown_coding("Send the body as it is, not compressed.")
    return await _read(request, min(ANONYMOUS_BYTES, request.app[CONFIG].limits.body_bytes))


@lru_cache(maxsize=256)
def media_type(header: str) -> tuple[str, str]:
    """The media type of a Content-Type, and its charset: utf-8 where it names none."""
    name, *parameters = (part.strip().lower() for part in header.split(";"))
    charset = "utf-8"
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        # What is written in the extended form (charset*=…) is no character set of ours either.
        if key.rstrip(" *") == "charset":
            charset = value.strip().strip('"')
    return name, charset


def _coding(request: web.Request) -> str:
    coding = ", ".join(request.headers.getall("Content-Encoding", ())).strip().lower()
    return "" if coding == "identity" else coding


async def _read(request: web.Request, most: int) -> bytes:
    length = request.content_length
    if length is not None and length > most:
        raise _too_large(most)
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _unpacked(body: bytes, coding: str, most: int) -> bytes:
    window = GZIP
    if coding == "deflate":
        # RFC 9110 8.4.1.2 asks for the zlib form; some send the data alone.
        window = ZLIB if body[:1] and body[0] & 0x0F == 8 else RAW
    machine = zlib.decompressobj(window)
    try:
        found = machine.decompress(body, most + 1)
    except zlib.error:
        found, machine = b"", zlib.decompressobj()
    if len(found) > most:
        raise _too_large(most)
    if not machine.eof or machine.unused_data:
        raise Refusal("invalid_json", f"The body could not be read as {coding}.")
    return found


def _too_large(most: int) -> Refusal:
    return Refusal("payload_too_large", f"The body is too large; send at most {most} bytes.")


def _unknown_coding(text: str, known: str = "") -> Refusal:
    facts = {"accept_encoding": known} if known else {}
    return Refusal("unsupported_media_type", text, facts=facts)
