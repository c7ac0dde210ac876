"""What hostile receivers do: a script for each way, for `tests.support.receiver.hostile`."""

from __future__ import annotations

import asyncio
import gzip

from tests.support.receiver import Script, Visit

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


def says(data: bytes) -> Script:
    async def script(visit: Visit) -> None:
        await visit.reply(data)

    return script


def says_and_closes(data: bytes) -> Script:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.write(data)

    return script


def says_and_resets(data: bytes) -> Script:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.write(data)
        visit.reset()

    return script


def repeats(start: bytes, part: bytes, pause: float = 0.0) -> Script:
    async def script(visit: Visit) -> None:
        await visit.request()
        await visit.write(start)
        while True:
            await visit.write(part)
            if pause:
                await asyncio.sleep(pause)

    return script


async def silence(visit: Visit) -> None:
    await visit.request()
    await visit.gone()


GOOD_HEAD_BAD_BODY = {
    "204 with a body": b"HTTP/1.1 204 No Content\r\n\r\nbody where none may be",
    "too much for its length": OK + b"Content-Length: 2\r\n\r\nok and more",
    "bad chunk size": OK + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\nabc\r\n",
    "a chunk, then a bad one": OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nZZZ\r\n",
    "an early hint before it": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    + OK
    + b"Transfer-Encoding: chunked\r\n\r\nZZZ\r\n",
    "two answers": EMPTY + EMPTY,
    "an answer and rubbish": EMPTY + b"\x16\x03\x01",
}


ODD = (
    b"HTTP/1.0 410 Gone\nX\0: \0\nContent-Encoding: gzip\n"
    b"Content-Type: text/plain; charset=windows-1254\n\n" + gzip.compress(b"n\xe3o \x81")
)
"""A readable status, odd in some ways, over a coded body of which a byte is no text."""


BROKEN = {
    "bad status line": says(b"HELLO\r\n\r\n"),
    "TLS bytes": says(b"\x15\x03\x01\x00\x02\x02\x46"),
    "101": says(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nbytes"),
    "a start, reset": says_and_resets(b"HTTP/1.1 200 O"),
    "endless line": repeats(b"HTTP/1.1 200 ", b"O" * 1000),
    "103 for ever": repeats(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100),
    "100 for ever": repeats(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "blank lines for ever": repeats(b"", b"\r\n" * 1000),
}
"""Without a readable status; tests/outbox/sending/answers.jsonl has more."""


BROKEN_OFF = {
    "half a head": says_and_closes(OK + b"Content-"),
    "half a head, reset": says_and_resets(OK + b"Content-"),
    "10,000 headers": says(OK + b"".join(b"X-%d: 1\r\n" % n for n in range(10_000)) + b"\r\n"),
    "a header of 64 KiB": says(OK + b"X: " + b"x" * 65_536 + b"\r\n\r\n"),
    "endless head": repeats(OK, b"X-A: b\r\n" * 100),
}
"""A readable status in a head that does not end."""


ENDLESS: dict[str, tuple[bytes, bytes]] = {
    "10 GB": (OK + b"Content-Length: 10000000000\r\n\r\n", b"x" * 65_536),
    "endless chunks": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n",
        b"4000\r\n" + b"x" * 16_384 + b"\r\n",
    ),
    "endless small chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10_000),
    "no length": (OK + b"\r\n", b"x" * 65_536),
    "gzip bomb": (
        OK + b"Content-Encoding: gzip\r\nContent-Length: 1000000000\r\n\r\n",
        gzip.compress(bytes(50_000_000)),
    ),
}
