"""A response that we send ourselves has the bytes of aiohttp's."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import product

import pytest
from aiohttp import web

from gateway.server.config import Limits
from gateway.server.http.answers import ANSWERS, Budget
from gateway.server.http.client_connections import FRAME, Runner

OURS = {"Server": "s"}


def closing() -> web.Response:
    response = web.Response(body=b"x", headers=OURS)
    response.force_close()
    return response


def with_cookie() -> web.Response:
    response = web.Response(body=b"x", headers=OURS)
    response.set_cookie("a", "b")
    return response


def compressed() -> web.Response:
    response = web.Response(body=b"x" * 1_000, headers=OURS)
    response.enable_compression()
    return response


MADE: dict[str, Callable[[], web.Response]] = {
    "body": lambda: web.Response(body=b'{"a":1}', headers=OURS | {"Content-Type": "a/b"}),
    "untyped": lambda: web.Response(body=b"x", headers=OURS),
    "created": lambda: web.Response(status=201, body=b"x", headers=OURS | {"ETag": '"1"'}),
    "reason": lambda: web.Response(status=299, reason="Odd", body=b"x", headers=OURS),
    "empty": lambda: web.Response(body=b"", headers=OURS),
    "nothing": lambda: web.Response(status=404, headers=OURS),
    "no_content": lambda: web.Response(status=204, body=b"", headers=OURS),
    "known": lambda: web.Response(status=304, body=b"x", headers=OURS),
    "text": lambda: web.json_response({"é": 1}, headers=OURS),
    "dated": lambda: web.Response(body=b"x", headers=OURS | {"Date": "then"}),
    "length": lambda: web.Response(body=b"xyz", headers=OURS | {"Content-Length": "3"}),
    "connection": lambda: web.Response(body=b"x", headers=OURS | {"Connection": "close"}),
    "injected": lambda: web.Response(body=b"x", headers=OURS | {"X": "a\r\nB: c"}),
    "closing": closing,
    "with_cookie": with_cookie,
    "compressed": compressed,
}


@pytest.fixture
async def ports() -> AsyncIterator[tuple[int, int]]:
    """The ports of our server and of aiohttp's, which send the same responses."""

    async def handle(request: web.Request) -> web.Response:
        return MADE[request.path.strip("/")]()

    app = web.Application()
    app.router.add_route("*", "/{path}", handle)
    app[ANSWERS] = Budget(1_000_000, 1_000_000)
    app[FRAME] = handle
    async with (
        _served(Runner(app, Limits(), lambda _: None, 1.0)) as ours,
        _served(web.AppRunner(app, access_log=None)) as theirs,
    ):
        yield ours, theirs


@asynccontextmanager
async def _served(runner: web.AppRunner) -> AsyncIterator[int]:
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


async def exchanged(port: int, request: bytes) -> bytes:
    """Return all bytes of the response, and of one to a second request if it is kept alive."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if b"close" not in request and (b"1.0" not in request or b"keep-alive" in request):
        writer.write(b"GET /empty HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return re.sub(rb"Date: \w{3}, [^\r]*", b"Date: now", answer)


LINES = (
    "GET {} HTTP/1.1", "HEAD {} HTTP/1.1", "GET {} HTTP/1.0",
    "POST {} HTTP/1.1\r\nConnection: close", "GET {} HTTP/1.0\r\nConnection: keep-alive",
    "GET {} HTTP/1.1\r\nAccept-Encoding: gzip",
    "GET {} HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade",
)  # fmt: skip


@pytest.mark.slow
async def test_the_bytes_are_those_of_aiohttp(ports: tuple[int, int]) -> None:
    for what, line in product(MADE, LINES):
        request = f"{line.format('/' + what)}\r\nHost: a\r\n\r\n".encode()
        ours, theirs = await asyncio.gather(*(exchanged(port, request) for port in ports))
        assert ours == theirs, (what, line)
